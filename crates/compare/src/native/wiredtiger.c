/*
 * What the comparison needs of WiredTiger, as plain functions: its own interface is structs of
 * function pointers, whose layout only its header knows.
 *
 * Every function returns 0 or one of WiredTiger's codes.
 */

#if defined(__has_include) && !__has_include(<wiredtiger.h>)
#error "wiredtiger.h is not installed: apt install libwiredtiger-dev"
#endif

#include <stddef.h>
#include <wiredtiger.h>

const int millpond_wt_not_found = WT_NOTFOUND;
const int millpond_wt_duplicate_key = WT_DUPLICATE_KEY;
const int millpond_wt_rollback = WT_ROLLBACK;

int millpond_wt_open(const char *home, const char *config, WT_CONNECTION **connection)
{
    return wiredtiger_open(home, NULL, config, connection);
}

int millpond_wt_close(WT_CONNECTION *connection)
{
    return connection->close(connection, NULL);
}

int millpond_wt_session_open(WT_CONNECTION *connection, const char *config, WT_SESSION **session)
{
    return connection->open_session(connection, NULL, config, session);
}

int millpond_wt_session_close(WT_SESSION *session)
{
    return session->close(session, NULL);
}

int millpond_wt_create(WT_SESSION *session, const char *uri, const char *config)
{
    return session->create(session, uri, config);
}

int millpond_wt_checkpoint(WT_SESSION *session)
{
    return session->checkpoint(session, NULL);
}

int millpond_wt_cursor_open(
    WT_SESSION *session, const char *uri, const char *config, WT_CURSOR **cursor)
{
    return session->open_cursor(session, uri, NULL, config, cursor);
}

int millpond_wt_cursor_close(WT_CURSOR *cursor)
{
    return cursor->close(cursor);
}

/* Lets go of the page that the cursor stands on. */
int millpond_wt_reset(WT_CURSOR *cursor)
{
    return cursor->reset(cursor);
}

static void set_key(WT_CURSOR *cursor, const void *key, size_t key_len)
{
    WT_ITEM item = {0};
    item.data = key;
    item.size = key_len;
    cursor->set_key(cursor, &item);
}

static void set_value(WT_CURSOR *cursor, const void *value, size_t value_len)
{
    WT_ITEM item = {0};
    item.data = value;
    item.size = value_len;
    cursor->set_value(cursor, &item);
}

/* Moves to the key. The value stays where it is until the cursor moves. */
int millpond_wt_search(WT_CURSOR *cursor, const void *key, size_t key_len, const void **value,
    size_t *value_len)
{
    WT_ITEM item = {0};
    int code;

    set_key(cursor, key, key_len);
    code = cursor->search(cursor);
    if (code == 0)
        code = cursor->get_value(cursor, &item);
    *value = item.data;
    *value_len = item.size;
    return code;
}

/* Moves to the key or to a neighbour; `exact` is negative, zero or positive as that is smaller. */
int millpond_wt_search_near(WT_CURSOR *cursor, const void *key, size_t key_len, int *exact)
{
    set_key(cursor, key, key_len);
    return cursor->search_near(cursor, exact);
}

int millpond_wt_next(WT_CURSOR *cursor)
{
    return cursor->next(cursor);
}

int millpond_wt_prev(WT_CURSOR *cursor)
{
    return cursor->prev(cursor);
}

/* The row that the cursor stands on; it stays where it is until the cursor moves. */
int millpond_wt_row(WT_CURSOR *cursor, const void **key, size_t *key_len, const void **value,
    size_t *value_len)
{
    WT_ITEM key_item = {0}, value_item = {0};
    int code;

    code = cursor->get_key(cursor, &key_item);
    if (code == 0)
        code = cursor->get_value(cursor, &value_item);
    *key = key_item.data;
    *key_len = key_item.size;
    *value = value_item.data;
    *value_len = value_item.size;
    return code;
}

int millpond_wt_insert(WT_CURSOR *cursor, const void *key, size_t key_len, const void *value,
    size_t value_len)
{
    set_key(cursor, key, key_len);
    set_value(cursor, value, value_len);
    return cursor->insert(cursor);
}

int millpond_wt_update(WT_CURSOR *cursor, const void *key, size_t key_len, const void *value,
    size_t value_len)
{
    set_key(cursor, key, key_len);
    set_value(cursor, value, value_len);
    return cursor->update(cursor);
}

int millpond_wt_remove(WT_CURSOR *cursor, const void *key, size_t key_len)
{
    set_key(cursor, key, key_len);
    return cursor->remove(cursor);
}

const char *millpond_wt_message(int code)
{
    return wiredtiger_strerror(code);
}
