/* Millpond for C and C++. The guide is docs/c.md.
 *
 * Made from crates/capi by cbindgen: a change is made there.
 *
 * After fork(), a store is the parent's. In the child, calls of its handles return MP_IN_USE, and
 * closing a handle frees nothing and leaves the store as it is. A child may start another program,
 * and open stores of its own: this one, too, once the parent has closed it. A daemon opens its
 * stores after its last fork(). A child made by clone(), vfork() or _Fork() is not noticed: it may
 * only start another program.
 */

#ifndef MILLPOND_H
#define MILLPOND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * A commit returns when it is durable.
 */
#define MP_SYNC 0

/**
 * A commit waits a little for others, whose flush it shares, and returns when it is durable.
 */
#define MP_GROUP 1

/**
 * A commit returns at once and is durable soon after.
 */
#define MP_ASYNC 2

/**
 * A commit returns at once and is durable with the next flush or checkpoint.
 */
#define MP_BULK 3

/**
 * Transactions behave as if they ran one after the other.
 */
#define MP_SERIALIZABLE 0

/**
 * Each read sees the data committed at its time.
 */
#define MP_READ_COMMITTED 1

/**
 * No bound: up to the end of the tree.
 */
#define MP_UNBOUNDED 0

/**
 * The range includes the key itself.
 */
#define MP_INCLUDED 1

/**
 * The range excludes the key itself.
 */
#define MP_EXCLUDED 2

/**
 * Only as the low bound: all keys that begin with these bytes. The high bound must be unbounded.
 */
#define MP_PREFIX 3

/**
 * Opens the tree, and creates it if it does not exist.
 */
#define MP_OPEN_OR_CREATE 0

/**
 * Opens the tree: MP_NO_SUCH if it does not exist.
 */
#define MP_OPEN 1

/**
 * Creates the tree: MP_EXISTS if it exists.
 */
#define MP_CREATE 2

/**
 * Result of a call. A negative one is an error, with a message from mp_error_message.
 */
typedef enum mp_status {
    /**
     * The call succeeded.
     */
    MP_OK = 0,
    /**
     * The key does not exist, or there is no further entry. Not an error.
     */
    MP_NOT_FOUND = 1,
    /**
     * An argument is invalid in every call: a null pointer, a string that is not UTF-8, an unknown
     * constant.
     */
    MP_MISUSE = -1,
    /**
     * A bug in the library. Please report it, with the message.
     */
    MP_PANIC = -2,
    /**
     * An option, a policy, a name or an argument is invalid.
     */
    MP_INVALID = -3,
    /**
     * The store or tree does not exist, and was not to be created.
     */
    MP_NO_SUCH = -4,
    /**
     * The store or tree exists already.
     */
    MP_EXISTS = -5,
    /**
     * The structure has another type, or belongs to another store.
     */
    MP_OTHER_TYPE = -6,
    /**
     * A key or a value is too long.
     */
    MP_TOO_LONG = -7,
    /**
     * Another process or another handle uses it.
     */
    MP_IN_USE = -8,
    /**
     * The store is open for reading only.
     */
    MP_READ_ONLY = -9,
    /**
     * The transaction lost in a deadlock: abort it and try again.
     */
    MP_DEADLOCK = -10,
    /**
     * A wait for a lock was too long: abort the transaction and try again.
     */
    MP_TIMEOUT = -11,
    /**
     * A call outside the transaction would wait for the transaction whose callback made it.
     */
    MP_OWN_TRANSACTION = -12,
    /**
     * The transaction, savepoint, snapshot or cursor cannot continue.
     */
    MP_TRANSACTION_FAILED = -13,
    /**
     * Memory is not enough for the request.
     */
    MP_MEMORY = -14,
    /**
     * The device is full. Stored data is intact.
     */
    MP_DISK_FULL = -15,
    /**
     * The device or the operating system failed.
     */
    MP_IO = -16,
    /**
     * Stored data differs from the data that was written.
     */
    MP_DAMAGED = -17,
    /**
     * A part of the store, such as its log, is missing.
     */
    MP_INCOMPLETE = -18,
    /**
     * This version does not know the format.
     */
    MP_VERSION = -19,
    /**
     * A callback cancelled the call.
     */
    MP_CANCELLED = -20,
    /**
     * Any other error.
     */
    MP_OTHER = -21,
    /**
     * The store was closed.
     */
    MP_CLOSED = -22,
} mp_status;

/**
 * A position among the entries of a tree within a range, which seeks and moves both ways. One
 * thread at a time may use it.
 */
typedef struct mp_cursor mp_cursor;

/**
 * Options for opening a store.
 */
typedef struct mp_options mp_options;

/**
 * A read-only view of the state committed at one moment. Any number of threads may use it at once.
 * A snapshot and a writer never wait for each other. The store keeps the snapshot's data until
 * the snapshot ends.
 */
typedef struct mp_snapshot mp_snapshot;

/**
 * An open store. Any number of threads may use it at once.
 */
typedef struct mp_store mp_store;

/**
 * A tree: an ordered map of byte strings. Any number of threads may use it at once. It keeps the
 * store open.
 */
typedef struct mp_tree mp_tree;

/**
 * A transaction. Threads may share it: their calls wait for each other.
 */
typedef struct mp_txn mp_txn;

/**
 * Bytes that the library returns: a value, a key, a report. Initialise it with MP_BUFFER_INIT,
 * pass it to any number of calls, and free it with mp_buffer_free. Each call replaces the content
 * and reuses the memory. A copy of the struct is not a buffer of its own.
 */
typedef struct mp_buffer {
    /**
     * The bytes, followed by a zero that does not count. NULL until a call has filled it.
     */
    void *data;
    /**
     * Number of bytes.
     */
    size_t len;
    /**
     * Bytes of its memory.
     */
    size_t capacity;
} mp_buffer;

/**
 * One end of a range.
 */
typedef struct mp_bound {
    /**
     * MP_UNBOUNDED, MP_INCLUDED, MP_EXCLUDED or MP_PREFIX.
     */
    int32_t kind;
    /**
     * The key; unused if unbounded.
     */
    const void *key;
    /**
     * Number of bytes.
     */
    size_t len;
} mp_bound;

/**
 * A range of keys. All zeros mean all keys, and so does a NULL pointer.
 */
typedef struct mp_range {
    /**
     * Lower bound of the range.
     */
    struct mp_bound low;
    /**
     * Upper bound of the range.
     */
    struct mp_bound high;
} mp_range;

/**
 * Bytes. A NULL pointer to a slice means no value.
 */
typedef struct mp_slice {
    /**
     * The first byte.
     */
    const void *data;
    /**
     * Number of bytes.
     */
    size_t len;
} mp_slice;

/**
 * Options of a transaction. Initialise them with MP_TXN_OPTIONS_INIT.
 */
typedef struct mp_txn_options {
    /**
     * MP_SYNC, MP_GROUP, MP_ASYNC or MP_BULK; -1 for the store's durability.
     */
    int32_t durability;
    /**
     * MP_SERIALIZABLE or MP_READ_COMMITTED.
     */
    int32_t isolation;
    /**
     * Longest wait for a lock in milliseconds; -1 for no limit, since deadlocks are found.
     */
    int64_t wait_ms;
} mp_txn_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Writes a backup to a new file at `path_of_backup`, while the store is in use. The backup is a
 * store of its own with everything that was committed before the call. `progress`, which may be
 * NULL, receives the bytes done and the bytes in all, of the pages and then of the log. If it
 * returns anything but 0, the backup is cancelled: the call returns MP_CANCELLED, and no file is
 * left.
 */
enum mp_status mp_backup(const struct mp_store *store,
                         const char *path_of_backup,
                         int32_t (*progress)(uint64_t done, uint64_t total, void *user),
                         void *user);

/**
 * Reads and checks everything, while the store is in use. `sound` receives true if there is no
 * fault. `report`, which may be NULL, receives a text with a line for each tree and each fault.
 */
enum mp_status mp_check(const struct mp_store *store, bool *sound, struct mp_buffer *report);

/**
 * Returns all statistics, as a JSON object.
 */
enum mp_status mp_stats(const struct mp_store *store, struct mp_buffer *json);

/**
 * Returns one number of the statistics by its name in JSON, such as "puts". Returns MP_NO_SUCH if
 * no statistic has that name.
 */
enum mp_status mp_stat(const struct mp_store *store, const char *name, uint64_t *value);

/**
 * Frees a buffer's memory and empties the buffer, so that freeing it again does nothing. NULL is
 * allowed.
 */
void mp_buffer_free(struct mp_buffer *buffer);

/**
 * Opens a cursor over the entries that a transaction sees, or, with NULL instead, over the
 * committed ones. `range` may be NULL for all keys. The cursor is on no entry yet. Close it with
 * mp_cursor_close, before or after the transaction's end.
 */
enum mp_status mp_cursor_open(const struct mp_tree *tree,
                              const struct mp_txn *txn,
                              const struct mp_range *range,
                              struct mp_cursor **out);

/**
 * Closes a cursor. NULL is allowed.
 */
void mp_cursor_close(struct mp_cursor *cursor);

/**
 * Moves to the first entry: MP_OK or MP_NOT_FOUND.
 */
enum mp_status mp_cursor_first(struct mp_cursor *cursor);

/**
 * Moves to the last entry: MP_OK or MP_NOT_FOUND.
 */
enum mp_status mp_cursor_last(struct mp_cursor *cursor);

/**
 * Moves to the entry behind the current or last one; a new cursor moves to the first one. On
 * MP_NOT_FOUND the cursor keeps its position, and a later call may find more.
 */
enum mp_status mp_cursor_next(struct mp_cursor *cursor);

/**
 * Moves to the entry before the current or last one; a new cursor moves to the last one.
 */
enum mp_status mp_cursor_prev(struct mp_cursor *cursor);

/**
 * Moves to the first entry at or above a key: MP_OK or MP_NOT_FOUND.
 */
enum mp_status mp_cursor_seek(struct mp_cursor *cursor, const void *key_data, size_t key_len);

/**
 * Moves to the last entry at or below a key: MP_OK or MP_NOT_FOUND.
 */
enum mp_status mp_cursor_seek_back(struct mp_cursor *cursor, const void *key_data, size_t key_len);

/**
 * Returns the cursor's current entry. Its bytes stay valid until the cursor's next call. Any of
 * the places may be NULL. If there is no current entry, returns MP_NOT_FOUND and leaves the places
 * unchanged.
 */
enum mp_status mp_cursor_entry(const struct mp_cursor *cursor,
                               const void **key_data,
                               size_t *key_len,
                               const void **value_data,
                               size_t *value_len);

/**
 * Copies the value of a key. If there is none, returns MP_NOT_FOUND and leaves the buffer
 * unchanged.
 */
enum mp_status mp_get(const struct mp_tree *tree,
                      const struct mp_txn *txn,
                      const void *key_data,
                      size_t key_len,
                      struct mp_buffer *out);

/**
 * Like mp_get within a transaction, for a key to be written: locks it for writing at once.
 */
enum mp_status mp_get_for_update(const struct mp_tree *tree,
                                 const struct mp_txn *txn,
                                 const void *key_data,
                                 size_t key_len,
                                 struct mp_buffer *out);

/**
 * Returns MP_OK if the key exists, otherwise MP_NOT_FOUND.
 */
enum mp_status mp_contains(const struct mp_tree *tree,
                           const struct mp_txn *txn,
                           const void *key_data,
                           size_t key_len);

/**
 * Sets the value of a key, whether it exists or not.
 */
enum mp_status mp_put(const struct mp_tree *tree,
                      const struct mp_txn *txn,
                      const void *key_data,
                      size_t key_len,
                      const void *value_data,
                      size_t value_len);

/**
 * Sets the value of a key if it does not exist. `done` receives true if it did so, and may be
 * NULL.
 */
enum mp_status mp_insert_if_absent(const struct mp_tree *tree,
                                   const struct mp_txn *txn,
                                   const void *key_data,
                                   size_t key_len,
                                   const void *value_data,
                                   size_t value_len,
                                   bool *done);

/**
 * Replaces the value of a key if it exists. `done` receives true if it did so, and may be NULL.
 */
enum mp_status mp_replace(const struct mp_tree *tree,
                          const struct mp_txn *txn,
                          const void *key_data,
                          size_t key_len,
                          const void *value_data,
                          size_t value_len,
                          bool *done);

/**
 * Sets the value of a key to `new_value` if it is `expected`, where NULL means no entry. `done`
 * receives true if it did so.
 */
enum mp_status mp_compare_and_swap(const struct mp_tree *tree,
                                   const struct mp_txn *txn,
                                   const void *key_data,
                                   size_t key_len,
                                   const struct mp_slice *expected,
                                   const struct mp_slice *new_value,
                                   bool *done);

/**
 * Removes a key: MP_OK, or MP_NOT_FOUND if there was none.
 */
enum mp_status mp_delete(const struct mp_tree *tree,
                         const struct mp_txn *txn,
                         const void *key_data,
                         size_t key_len);

/**
 * Removes the keys of a range. `count` receives their number, and may be NULL.
 */
enum mp_status mp_delete_range(const struct mp_tree *tree,
                               const struct mp_txn *txn,
                               const struct mp_range *range,
                               uint64_t *count);

/**
 * Counts the keys of a range.
 */
enum mp_status mp_count(const struct mp_tree *tree,
                        const struct mp_txn *txn,
                        const struct mp_range *range,
                        uint64_t *count);

/**
 * Removes and returns the first entry, or returns MP_NOT_FOUND in an empty tree.
 */
enum mp_status mp_pop_first(const struct mp_tree *tree,
                            const struct mp_txn *txn,
                            struct mp_buffer *key_out,
                            struct mp_buffer *value_out);

/**
 * Removes and returns the last entry, or returns MP_NOT_FOUND in an empty tree.
 */
enum mp_status mp_pop_last(const struct mp_tree *tree,
                           const struct mp_txn *txn,
                           struct mp_buffer *key_out,
                           struct mp_buffer *value_out);

/**
 * Appends a u32 to a key.
 */
enum mp_status mp_key_push_u32(struct mp_buffer *key, uint32_t part);

/**
 * Takes a u32 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
 * with one.
 */
enum mp_status mp_key_take_u32(struct mp_slice *rest, uint32_t *part);

/**
 * Appends a u64 to a key.
 */
enum mp_status mp_key_push_u64(struct mp_buffer *key, uint64_t part);

/**
 * Takes a u64 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
 * with one.
 */
enum mp_status mp_key_take_u64(struct mp_slice *rest, uint64_t *part);

/**
 * Appends an i32 to a key.
 */
enum mp_status mp_key_push_i32(struct mp_buffer *key, int32_t part);

/**
 * Takes an i32 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
 * with one.
 */
enum mp_status mp_key_take_i32(struct mp_slice *rest, int32_t *part);

/**
 * Appends an i64 to a key.
 */
enum mp_status mp_key_push_i64(struct mp_buffer *key, int64_t part);

/**
 * Takes an i64 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
 * with one.
 */
enum mp_status mp_key_take_i64(struct mp_slice *rest, int64_t *part);

/**
 * Appends an f64 to a key.
 */
enum mp_status mp_key_push_f64(struct mp_buffer *key, double part);

/**
 * Takes an f64 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
 * with one.
 */
enum mp_status mp_key_take_f64(struct mp_slice *rest, double *part);

/**
 * Appends a bool to a key.
 */
enum mp_status mp_key_push_bool(struct mp_buffer *key, bool part);

/**
 * Takes a bool from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
 * with one.
 */
enum mp_status mp_key_take_bool(struct mp_slice *rest, bool *part);

/**
 * Appends a string, or any bytes, to a key of several parts. The bytes may be in the key itself.
 * (A key that is one string is its bytes, and needs no function.)
 */
enum mp_status mp_key_push_bytes(struct mp_buffer *key, const void *part, size_t len);

/**
 * Takes a string, or any bytes, from the front of the rest of a key of several parts. The rest
 * must not be in the buffer `part`.
 */
enum mp_status mp_key_take_bytes(struct mp_slice *rest, struct mp_buffer *part);

/**
 * Empties a buffer for another key; its memory stays.
 */
enum mp_status mp_key_clear(struct mp_buffer *key);

/**
 * Returns the default options, never NULL. Free them with mp_options_free; an open store does not
 * need them.
 */
struct mp_options *mp_options_new(void);

/**
 * Frees options. NULL is allowed.
 */
void mp_options_free(struct mp_options *options);

/**
 * Sets the bytes of memory for everything. Default: a quarter of the memory that the process may
 * use.
 */
enum mp_status mp_options_memory(struct mp_options *options, uint64_t bytes);

/**
 * Sets the bytes per page of a new store, a power of two from 4096 to 65536.
 */
enum mp_status mp_options_page_size(struct mp_options *options, uint32_t bytes);

/**
 * Sets the compression of the pages of a new store.
 */
enum mp_status mp_options_compression(struct mp_options *options, bool on);

/**
 * Sets the replacement policy, such as "watt(write_weight=2)"; `millpond policies` lists them.
 */
enum mp_status mp_options_policy(struct mp_options *options, const char *policy);

/**
 * Opens the store for reading only; it must exist. Default: no.
 */
enum mp_status mp_options_read_only(struct mp_options *options, bool on);

/**
 * Creates a missing store. Default: yes.
 */
enum mp_status mp_options_create_if_missing(struct mp_options *options, bool on);

/**
 * Sets the durability of commits, unless a transaction's options set it: MP_SYNC (the default),
 * MP_GROUP, MP_ASYNC or MP_BULK.
 */
enum mp_status mp_options_durability(struct mp_options *options, int32_t when);

/**
 * Sets the approximate bytes of log that a recovery may have to read. Default: 512 MiB.
 */
enum mp_status mp_options_log_gap(struct mp_options *options, uint64_t bytes);

/**
 * Sets the maximum bytes of the spill file beside the store. It takes data of large transactions
 * and old snapshots that does not fit into memory; with 0 there is no such file. Default: 16 GiB.
 */
enum mp_status mp_options_spill_max(struct mp_options *options, uint64_t bytes);

/**
 * Sets a second tier: `bytes` of the file at `path_of_cache`, on a faster device than the store's,
 * are a cache of pages under `policy`, such as "tq". With `write_back` the two files are one
 * store: see docs/second-tier.md.
 */
enum mp_status mp_options_second_tier(struct mp_options *options,
                                      const char *path_of_cache,
                                      uint64_t bytes,
                                      const char *policy,
                                      bool write_back);

/**
 * Begins a snapshot of the state committed now.
 */
enum mp_status mp_snapshot_begin(const struct mp_store *store, struct mp_snapshot **out);

/**
 * Ends a snapshot; its cursors continue. NULL is allowed.
 */
void mp_snapshot_end(struct mp_snapshot *snapshot);

/**
 * Copies the value of a key in a snapshot. If there is none, returns MP_NOT_FOUND and leaves the
 * buffer unchanged.
 */
enum mp_status mp_snapshot_get(const struct mp_snapshot *snapshot,
                               const struct mp_tree *tree,
                               const void *key_data,
                               size_t key_len,
                               struct mp_buffer *out);

/**
 * Counts the keys of a range in a snapshot; `range` may be NULL.
 */
enum mp_status mp_snapshot_count(const struct mp_snapshot *snapshot,
                                 const struct mp_tree *tree,
                                 const struct mp_range *range,
                                 uint64_t *count);

/**
 * Opens a cursor over the entries in a snapshot; `range` may be NULL.
 */
enum mp_status mp_snapshot_cursor(const struct mp_snapshot *snapshot,
                                  const struct mp_tree *tree,
                                  const struct mp_range *range,
                                  struct mp_cursor **out);

/**
 * Returns the message of this thread's last error, or an empty one if none has occurred. It stays
 * until the thread's next error. It is never NULL, and must not be freed.
 */
const char *mp_error_message(void);

/**
 * Returns the name of a status, such as "MP_TIMEOUT". It is never NULL, and must not be freed.
 */
const char *mp_status_name(int32_t status);

/**
 * Returns the library's version, such as "0.1.0". It is never NULL, and must not be freed.
 */
const char *mp_version(void);

/**
 * Opens the store at `path`, or creates one there. A store that was not closed is recovered.
 * `options` may be NULL. Only one process at a time can have a store open; others get MP_IN_USE.
 */
enum mp_status mp_open(const char *path_of_store,
                       const struct mp_options *options,
                       struct mp_store **out);

/**
 * Creates a store in memory, which is lost when it is closed. `options` may be NULL.
 */
enum mp_status mp_open_memory(const struct mp_options *options, struct mp_store **out);

/**
 * Closes a store. Everything is durable then, and the store can be opened again at once, here or
 * in another process. The handle is gone whatever is returned. Calls on remaining handles (trees,
 * transactions, cursors, snapshots) return MP_CLOSED. A transaction that is still open has not
 * committed: the next opening undoes it, as after a crash. NULL is allowed. In the child of a
 * fork the call does nothing, and returns MP_IN_USE.
 */
enum mp_status mp_close(struct mp_store *store);

/**
 * Makes everything durable that is committed.
 */
enum mp_status mp_flush(const struct mp_store *store);

/**
 * Takes a checkpoint: a recovery only reads the log from there on.
 */
enum mp_status mp_checkpoint(const struct mp_store *store);

/**
 * Opens the tree called `name`; `how` is MP_OPEN_OR_CREATE, MP_OPEN or MP_CREATE.
 */
enum mp_status mp_tree_open(const struct mp_store *store,
                            const char *name,
                            int32_t how,
                            struct mp_tree **out);

/**
 * Closes a tree. NULL is allowed.
 */
void mp_tree_close(struct mp_tree *tree);

/**
 * Removes the tree called `name` with all its entries. Returns MP_IN_USE if handles of it are
 * open.
 */
enum mp_status mp_tree_drop(const struct mp_store *store, const char *name);

/**
 * Calls `visit` with the name of each tree. The name is not zero-terminated, and valid during the
 * call only. If `visit` returns anything but 0, the call stops and returns MP_CANCELLED.
 */
enum mp_status mp_tree_names(const struct mp_store *store,
                             int32_t (*visit)(const char *name, size_t len, void *user),
                             void *user);

/**
 * Begins a transaction; `options` may be NULL.
 */
enum mp_status mp_txn_begin(const struct mp_store *store,
                            const struct mp_txn_options *options,
                            struct mp_txn **out);

/**
 * Commits a transaction. It ends, its handle is gone, and its cursors can only be closed, whatever
 * is returned. MP_OK: it is committed, and durable according to its durability. If the log failed,
 * the next opening of the store shows whether it is durable.
 */
enum mp_status mp_txn_commit(struct mp_txn *txn);

/**
 * Rolls a transaction back. It ends, and its handle is gone. NULL is allowed.
 */
enum mp_status mp_txn_abort(struct mp_txn *txn);

/**
 * Creates a savepoint; `number` receives its number.
 */
enum mp_status mp_txn_savepoint(const struct mp_txn *txn, size_t *number);

/**
 * Rolls back to a savepoint, which stays. Later savepoints, and all cursors of the transaction,
 * end.
 */
enum mp_status mp_txn_rollback_to(const struct mp_txn *txn, size_t number);

/**
 * Runs `work` in a transaction and commits it if `work` returns MP_OK. If the transaction loses in
 * a deadlock, it is aborted, and `work` runs again, for up to ten seconds: so `work` must have no
 * other effects. If `work` returns anything else, the transaction is aborted and that status is
 * returned; a number that is not a status becomes MP_CANCELLED. The message is that of the last
 * call within `work` that failed with this status, if one did. `work` may end the transaction
 * itself, and must neither throw nor jump out of the call. `options` may be NULL.
 */
enum mp_status mp_transact(const struct mp_store *store,
                           const struct mp_txn_options *options,
                           int32_t (*work)(struct mp_txn *txn, void *user),
                           void *user);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MILLPOND_H */

/** Initial value of a buffer. */
#define MP_BUFFER_INIT { NULL, 0, 0 }
/** Initial value of transaction options: those of the store. */
#define MP_TXN_OPTIONS_INIT { -1, MP_SERIALIZABLE, -1 }
