/*
 * What the comparison needs of BerkeleyDB, as plain functions: its own interface is structs of
 * function pointers, whose layout only its header knows.
 *
 * Every function returns 0 or one of BerkeleyDB's codes.
 */

#if defined(__has_include) && !__has_include(<db.h>)
#error "db.h is not installed: apt install libdb5.3-dev"
#endif

#include <db.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if DB_VERSION_MAJOR < 5
#error "this is an old BerkeleyDB: apt install libdb5.3-dev"
#endif

const int millpond_bdb_not_found = DB_NOTFOUND;
const int millpond_bdb_key_exists = DB_KEYEXIST;
const int millpond_bdb_buffer_small = DB_BUFFER_SMALL;
const int millpond_bdb_deadlock = DB_LOCK_DEADLOCK;

/* Nothing is printed: the codes tell what is wrong. */
static void be_silent(const DB_ENV *env, const char *prefix, const char *message)
{
    (void)env;
    (void)prefix;
    (void)message;
}

/* Log, locks and transactions, with a log buffer of a mebibyte and room for many locks. */
static int with_transactions(DB_ENV *env, int synced)
{
    int code;

    if ((code = env->set_lk_detect(env, DB_LOCK_DEFAULT)) != 0)
        return code;
    if ((code = env->set_lk_max_locks(env, 100000)) != 0)
        return code;
    if ((code = env->set_lk_max_objects(env, 100000)) != 0)
        return code;
    if ((code = env->set_lk_max_lockers(env, 10000)) != 0)
        return code;
    if ((code = env->set_lg_bsize(env, 1 << 20)) != 0)
        return code;
    if ((code = env->set_lg_max(env, 64 << 20)) != 0)
        return code;
    if ((code = env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1)) != 0)
        return code;
    return synced ? 0 : env->set_flags(env, DB_TXN_NOSYNC, 1);
}

/*
 * An environment of this process's own, with a cache. Without transactions: with locks for one
 * writer and many readers per database, and no log. With: a log, which is synchronised at each
 * commit if `synced`. Direct I/O, if it is asked for and the library has it.
 */
int millpond_bdb_env_open(const char *home, uint64_t cache, int direct, int transactions,
    int synced, DB_ENV **env)
{
    const uint64_t gib = (uint64_t)1 << 30;
    const u_int32_t what = transactions
        ? DB_INIT_LOCK | DB_INIT_LOG | DB_INIT_TXN | DB_RECOVER
        : DB_INIT_CDB;
    DB_ENV *made;
    int code;

    if ((code = db_env_create(&made, 0)) != 0)
        return code;
    made->set_errcall(made, be_silent);
    if (direct)
        (void)made->set_flags(made, DB_DIRECT_DB, 1);
    code = made->set_cachesize(made, (u_int32_t)(cache / gib), (u_int32_t)(cache % gib), 1);
    if (code == 0 && transactions)
        code = with_transactions(made, synced);
    if (code == 0)
        code = made->open(made, home, DB_CREATE | DB_PRIVATE | DB_THREAD | DB_INIT_MPOOL | what, 0);
    if (code != 0) {
        (void)made->close(made, 0);
        return code;
    }
    *env = made;
    return 0;
}

int millpond_bdb_env_close(DB_ENV *env)
{
    return env->close(env, 0);
}

/* Writes all pages, so that what is older of the log is no longer needed. */
int millpond_bdb_checkpoint(DB_ENV *env)
{
    return env->txn_checkpoint(env, 0, 0, 0);
}

int millpond_bdb_begin(DB_ENV *env, DB_TXN **txn)
{
    return env->txn_begin(env, NULL, txn, 0);
}

/* Whatever they answer, the transaction is gone. */
int millpond_bdb_commit(DB_TXN *txn)
{
    return txn->commit(txn, 0);
}

int millpond_bdb_abort(DB_TXN *txn)
{
    return txn->abort(txn);
}

int millpond_bdb_open(DB_ENV *env, const char *file, int create, int transactions, DB **db)
{
    const u_int32_t how = DB_THREAD | (create ? DB_CREATE : 0)
        | (transactions ? DB_AUTO_COMMIT : 0);
    DB *made;
    int code;

    if ((code = db_create(&made, env, 0)) != 0)
        return code;
    code = made->open(made, NULL, file, NULL, DB_BTREE, how, 0644);
    if (code != 0) {
        (void)made->close(made, 0);
        return code;
    }
    *db = made;
    return 0;
}

int millpond_bdb_close(DB *db)
{
    return db->close(db, 0);
}

int millpond_bdb_sync(DB *db)
{
    return db->sync(db, 0);
}

static DBT outgoing(const void *data, size_t len)
{
    DBT dbt;

    memset(&dbt, 0, sizeof dbt);
    dbt.data = (void *)data;
    dbt.size = (u_int32_t)len;
    return dbt;
}

/*
 * Copies the value into `value`, which has room for `room` bytes; `value_len` is its length, also
 * where it is more than that and DB_BUFFER_SMALL is returned.
 */
int millpond_bdb_get(DB *db, DB_TXN *txn, const void *key, size_t key_len, void *value,
    size_t room, size_t *value_len)
{
    DBT from = outgoing(key, key_len), to = outgoing(value, 0);
    int code;

    to.ulen = (u_int32_t)room;
    to.flags = DB_DBT_USERMEM;
    code = db->get(db, txn, &from, &to, 0);
    *value_len = to.size;
    return code;
}

int millpond_bdb_put(DB *db, DB_TXN *txn, const void *key, size_t key_len, const void *value,
    size_t value_len, int only_new)
{
    DBT from = outgoing(key, key_len), to = outgoing(value, value_len);

    return db->put(db, txn, &from, &to, only_new ? DB_NOOVERWRITE : 0);
}

int millpond_bdb_delete(DB *db, DB_TXN *txn, const void *key, size_t key_len)
{
    DBT from = outgoing(key, key_len);

    return db->del(db, txn, &from, 0);
}

/* Without a transaction, nobody else writes to the database while a cursor that writes is open. */
int millpond_bdb_cursor_open(DB *db, DB_TXN *txn, int writes, DBC **cursor)
{
    return db->cursor(db, txn, cursor, writes && txn == NULL ? DB_WRITECURSOR : 0);
}

int millpond_bdb_cursor_close(DBC *cursor)
{
    return cursor->close(cursor);
}

static int move(DBC *cursor, DBT *from, u_int32_t how, const void **key, size_t *key_len,
    const void **value, size_t *value_len)
{
    DBT to;
    int code;

    memset(&to, 0, sizeof to);
    code = cursor->get(cursor, from, &to, how);
    *key = from->data;
    *key_len = from->size;
    *value = to.data;
    *value_len = to.size;
    return code;
}

/*
 * Moves to the key, locked as for writing if `rmw`, and tells its value, which stays where it is
 * until the cursor moves.
 */
int millpond_bdb_cursor_find(DBC *cursor, const void *key, size_t key_len, int rmw,
    const void **value, size_t *value_len)
{
    DBT from = outgoing(key, key_len);
    const void *found;
    size_t found_len;

    return move(cursor, &from, rmw ? DB_SET | DB_RMW : DB_SET, &found, &found_len, value, value_len);
}

/* Moves to the first key that is not below the given one, which the row's key replaces. */
int millpond_bdb_cursor_seek(DBC *cursor, const void **key, size_t *key_len, const void **value,
    size_t *value_len)
{
    DBT from = outgoing(*key, *key_len);

    return move(cursor, &from, DB_SET_RANGE, key, key_len, value, value_len);
}

int millpond_bdb_cursor_next(DBC *cursor, const void **key, size_t *key_len, const void **value,
    size_t *value_len)
{
    DBT from = outgoing(NULL, 0);

    return move(cursor, &from, DB_NEXT, key, key_len, value, value_len);
}

/* A new cursor comes to the last row so. */
int millpond_bdb_cursor_prev(DBC *cursor, const void **key, size_t *key_len, const void **value,
    size_t *value_len)
{
    DBT from = outgoing(NULL, 0);

    return move(cursor, &from, DB_PREV, key, key_len, value, value_len);
}

/* Replaces the value of the row that the cursor stands on. */
int millpond_bdb_cursor_replace(DBC *cursor, const void *value, size_t value_len)
{
    DBT from = outgoing(NULL, 0), to = outgoing(value, value_len);

    return cursor->put(cursor, &from, &to, DB_CURRENT);
}

const char *millpond_bdb_message(int code)
{
    return db_strerror(code);
}
