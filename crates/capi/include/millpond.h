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
 * Transactions are as if they ran one after the other.
 */
#define MP_SERIALIZABLE 0

/**
 * Reads see what is committed when they are made.
 */
#define MP_READ_COMMITTED 1

/**
 * No bound: to the end of the tree.
 */
#define MP_UNBOUNDED 0

/**
 * The key itself is within.
 */
#define MP_INCLUDED 1

/**
 * The key itself is not within.
 */
#define MP_EXCLUDED 2

/**
 * Only as the low bound: the keys that begin with these bytes. The high bound must be unbounded.
 */
#define MP_PREFIX 3

/**
 * Opens the tree, and creates it if there is none.
 */
#define MP_OPEN_OR_CREATE 0

/**
 * Opens the tree: MP_NO_SUCH if there is none.
 */
#define MP_OPEN 1

/**
 * Creates the tree: MP_EXISTS if there is one.
 */
#define MP_CREATE 2

/**
 * Result of a call. Negative: an error, see mp_error_message.
 */
typedef enum mp_status {
    /**
     * Done.
     */
    MP_OK = 0,
    /**
     * There is no such key, or no further entry. Not an error.
     */
    MP_NOT_FOUND = 1,
    /**
     * An argument that no call may have: a null pointer, a string that is not UTF-8, an unknown
     * constant.
     */
    MP_MISUSE = -1,
    /**
     * A fault of the library's. Please report it, with the message.
     */
    MP_PANIC = -2,
    /**
     * An option, a policy, a name or an argument that is not possible.
     */
    MP_INVALID = -3,
    /**
     * There is no such store or tree, and none was to be created.
     */
    MP_NO_SUCH = -4,
    /**
     * There is one already.
     */
    MP_EXISTS = -5,
    /**
     * The structure has another type, or belongs to another store.
     */
    MP_OTHER_TYPE = -6,
    /**
     * A key or a value that does not fit.
     */
    MP_TOO_LONG = -7,
    /**
     * Another process, or other handles, have it.
     */
    MP_IN_USE = -8,
    /**
     * The store is open for reading only.
     */
    MP_READ_ONLY = -9,
    /**
     * The transaction lost in a deadlock: abort it, and the same one may succeed.
     */
    MP_DEADLOCK = -10,
    /**
     * A lock was waited for too long: abort the transaction, and the same one may succeed.
     */
    MP_TIMEOUT = -11,
    /**
     * A call outside the transaction would wait for the transaction whose callback it is made in.
     */
    MP_OWN_TRANSACTION = -12,
    /**
     * The transaction, savepoint, snapshot or cursor cannot go on.
     */
    MP_TRANSACTION_FAILED = -13,
    /**
     * Memory does not suffice for what was asked for.
     */
    MP_MEMORY = -14,
    /**
     * The device is full. What is stored is intact.
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
     * Something that belongs to the store, such as its log, is missing.
     */
    MP_INCOMPLETE = -18,
    /**
     * The format is one that this version does not know.
     */
    MP_VERSION = -19,
    /**
     * A callback cancelled it.
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
 * A place among the entries of a tree within a range, which seeks and moves both ways. One thread
 * at a time may use it.
 */
typedef struct mp_cursor mp_cursor;

/**
 * Options for opening a store.
 */
typedef struct mp_options mp_options;

/**
 * A read-only view of the state committed at one moment. Any number of threads may use it at once.
 * It waits for no writer and keeps none waiting. The store keeps the snapshot's data until it is
 * freed.
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
 * A transaction. Threads may share it: their calls wait for one another.
 */
typedef struct mp_txn mp_txn;

/**
 * Bytes that the library gives: a value, a key, a report. Begin with MP_BUFFER_INIT, pass it to
 * as many calls as you like, which replace what is in it and use its memory again, and end with
 * mp_buffer_free. Copies of the struct are not buffers of their own.
 */
typedef struct mp_buffer {
    /**
     * The bytes, and a zero behind them that does not count. NULL until a call has filled it.
     */
    void *data;
    /**
     * Number of bytes.
     */
    size_t len;
    /**
     * Number of bytes that fit into its memory.
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
 * A range of keys. All zeros are all keys, and so is a pointer that is NULL.
 */
typedef struct mp_range {
    /**
     * Beginning of the range.
     */
    struct mp_bound low;
    /**
     * End of the range.
     */
    struct mp_bound high;
} mp_range;

/**
 * Bytes, or nothing at all: NULL.
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
 * Options of a transaction. Begin with MP_TXN_OPTIONS_INIT.
 */
typedef struct mp_txn_options {
    /**
     * MP_SYNC, MP_GROUP, MP_ASYNC, MP_BULK; -1: as the store.
     */
    int32_t durability;
    /**
     * MP_SERIALIZABLE or MP_READ_COMMITTED.
     */
    int32_t isolation;
    /**
     * Milliseconds that a lock is waited for at most; -1: for ever, as deadlocks are found.
     */
    int64_t wait_ms;
} mp_txn_options;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Writes a backup to a new file at `path_of_backup`, while the store is used: a store of its own
 * with everything that was committed before the call. `progress`, which may be NULL, is told bytes
 * done and bytes in all, of the pages and then of the log, and cancels the backup by returning
 * something else than 0: MP_CANCELLED, and nothing is left of it.
 */
enum mp_status mp_backup(const struct mp_store *store,
                         const char *path_of_backup,
                         int32_t (*progress)(uint64_t done, uint64_t total, void *user),
                         void *user);

/**
 * Reads everything and checks it, while the store is used. `sound` gets whether all is well, and
 * `report`, which may be NULL, a text with a line for each tree and each fault.
 */
enum mp_status mp_check(const struct mp_store *store, bool *sound, struct mp_buffer *report);

/**
 * Gives all statistics, as a JSON object.
 */
enum mp_status mp_stats(const struct mp_store *store, struct mp_buffer *json);

/**
 * Gives one number of the statistics by its name in JSON, such as "puts". MP_NO_SUCH: there is
 * none of that name.
 */
enum mp_status mp_stat(const struct mp_store *store, const char *name, uint64_t *value);

/**
 * Frees a buffer's memory and makes it an empty one again, of which nothing happens if it is
 * freed once more. NULL is no error.
 */
void mp_buffer_free(struct mp_buffer *buffer);

/**
 * Opens a cursor of what a transaction sees, or, with NULL instead of one, of what is committed.
 * `range` may be NULL: all keys. It is on no entry yet. Close it with mp_cursor_close, before or
 * after the transaction's end.
 */
enum mp_status mp_cursor_open(const struct mp_tree *tree,
                              const struct mp_txn *txn,
                              const struct mp_range *range,
                              struct mp_cursor **out);

/**
 * Closes a cursor. NULL is no error.
 */
void mp_cursor_close(struct mp_cursor *cursor);

/**
 * Goes to the first entry: MP_OK or MP_NOT_FOUND.
 */
enum mp_status mp_cursor_first(struct mp_cursor *cursor);

/**
 * Goes to the last entry: MP_OK or MP_NOT_FOUND.
 */
enum mp_status mp_cursor_last(struct mp_cursor *cursor);

/**
 * Goes to the entry behind the one that it is on, or was on last; a new cursor to the first.
 * MP_NOT_FOUND: there is none; it stays where it was, and a later call may find more.
 */
enum mp_status mp_cursor_next(struct mp_cursor *cursor);

/**
 * Goes to the entry before the one that it is on, or was on last; a new cursor to the last.
 */
enum mp_status mp_cursor_prev(struct mp_cursor *cursor);

/**
 * Goes to the first entry at or above a key: MP_OK or MP_NOT_FOUND.
 */
enum mp_status mp_cursor_seek(struct mp_cursor *cursor, const void *key_data, size_t key_len);

/**
 * Goes to the last entry at or below a key: MP_OK or MP_NOT_FOUND.
 */
enum mp_status mp_cursor_seek_back(struct mp_cursor *cursor, const void *key_data, size_t key_len);

/**
 * Gives the entry that a cursor is on: its bytes, which are there until the cursor's next call.
 * Any of the places may be NULL. MP_NOT_FOUND: it is on none, and the places are as they were.
 */
enum mp_status mp_cursor_entry(const struct mp_cursor *cursor,
                               const void **key_data,
                               size_t *key_len,
                               const void **value_data,
                               size_t *value_len);

/**
 * Copies the value of a key. MP_NOT_FOUND: there is none, and the buffer is as it was.
 */
enum mp_status mp_get(const struct mp_tree *tree,
                      const struct mp_txn *txn,
                      const void *key_data,
                      size_t key_len,
                      struct mp_buffer *out);

/**
 * Like mp_get within a transaction, for a key that it will write: locked for that at once.
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
 * Sets the value of a key, whether there was one or not.
 */
enum mp_status mp_put(const struct mp_tree *tree,
                      const struct mp_txn *txn,
                      const void *key_data,
                      size_t key_len,
                      const void *value_data,
                      size_t value_len);

/**
 * Sets the value of a key if there is none; gives whether it did. `done` may be NULL.
 */
enum mp_status mp_insert_if_absent(const struct mp_tree *tree,
                                   const struct mp_txn *txn,
                                   const void *key_data,
                                   size_t key_len,
                                   const void *value_data,
                                   size_t value_len,
                                   bool *done);

/**
 * Replaces the value of a key if there is one; gives whether it did. `done` may be NULL.
 */
enum mp_status mp_replace(const struct mp_tree *tree,
                          const struct mp_txn *txn,
                          const void *key_data,
                          size_t key_len,
                          const void *value_data,
                          size_t value_len,
                          bool *done);

/**
 * Sets the value of a key to `new_value` if it is `expected`; gives whether it did. NULL means: no
 * entry.
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
 * Removes the keys of a range; gives how many. `count` may be NULL.
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
 * Removes the first entry and gives it. MP_NOT_FOUND: there was none.
 */
enum mp_status mp_pop_first(const struct mp_tree *tree,
                            const struct mp_txn *txn,
                            struct mp_buffer *key_out,
                            struct mp_buffer *value_out);

/**
 * Removes the last entry and gives it. MP_NOT_FOUND: there was none.
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
 * Takes a u32 from the front of what is left of a key. MP_MISUSE: what is left does not begin
 * with one.
 */
enum mp_status mp_key_take_u32(struct mp_slice *rest, uint32_t *part);

/**
 * Appends a u64 to a key.
 */
enum mp_status mp_key_push_u64(struct mp_buffer *key, uint64_t part);

/**
 * Takes a u64 from the front of what is left of a key. MP_MISUSE: what is left does not begin
 * with one.
 */
enum mp_status mp_key_take_u64(struct mp_slice *rest, uint64_t *part);

/**
 * Appends a i32 to a key.
 */
enum mp_status mp_key_push_i32(struct mp_buffer *key, int32_t part);

/**
 * Takes a i32 from the front of what is left of a key. MP_MISUSE: what is left does not begin
 * with one.
 */
enum mp_status mp_key_take_i32(struct mp_slice *rest, int32_t *part);

/**
 * Appends a i64 to a key.
 */
enum mp_status mp_key_push_i64(struct mp_buffer *key, int64_t part);

/**
 * Takes a i64 from the front of what is left of a key. MP_MISUSE: what is left does not begin
 * with one.
 */
enum mp_status mp_key_take_i64(struct mp_slice *rest, int64_t *part);

/**
 * Appends a f64 to a key.
 */
enum mp_status mp_key_push_f64(struct mp_buffer *key, double part);

/**
 * Takes a f64 from the front of what is left of a key. MP_MISUSE: what is left does not begin
 * with one.
 */
enum mp_status mp_key_take_f64(struct mp_slice *rest, double *part);

/**
 * Appends a bool to a key.
 */
enum mp_status mp_key_push_bool(struct mp_buffer *key, bool part);

/**
 * Takes a bool from the front of what is left of a key. MP_MISUSE: what is left does not begin
 * with one.
 */
enum mp_status mp_key_take_bool(struct mp_slice *rest, bool *part);

/**
 * Appends a string, or any bytes, to a key of several parts; these may be bytes of the key itself.
 * (A key that is one string is its bytes, and needs no function.)
 */
enum mp_status mp_key_push_bytes(struct mp_buffer *key, const void *part, size_t len);

/**
 * Takes a string, or any bytes, from the front of what is left of a key of several parts, which is
 * not in the buffer itself.
 */
enum mp_status mp_key_take_bytes(struct mp_slice *rest, struct mp_buffer *part);

/**
 * Empties a buffer, to begin another key; its memory stays.
 */
enum mp_status mp_key_clear(struct mp_buffer *key);

/**
 * The defaults. Never NULL. Close it with mp_options_free; a store does not need it once it is
 * open.
 */
struct mp_options *mp_options_new(void);

/**
 * Frees options. NULL is no error.
 */
void mp_options_free(struct mp_options *options);

/**
 * Bytes of memory for everything. Default: a quarter of what the process may use.
 */
enum mp_status mp_options_memory(struct mp_options *options, uint64_t bytes);

/**
 * Bytes of a page of a new store, a power of two from 4096 to 65536.
 */
enum mp_status mp_options_page_size(struct mp_options *options, uint32_t bytes);

/**
 * Sets the compression of the pages of a new store.
 */
enum mp_status mp_options_compression(struct mp_options *options, bool on);

/**
 * The replacement policy, such as "watt(write_weight=2)"; `millpond policies` lists them.
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
 * When a commit is durable unless the transaction's options tell: MP_SYNC (the default),
 * MP_GROUP, MP_ASYNC or MP_BULK.
 */
enum mp_status mp_options_durability(struct mp_options *options, int32_t when);

/**
 * Bytes of log that a recovery may have to read, about. Default: 512 MiB.
 */
enum mp_status mp_options_log_gap(struct mp_options *options, uint64_t bytes);

/**
 * Bytes that the file beside the store may have which takes what large transactions and old
 * snapshots need beyond memory; 0: there is none. Default: 16 GiB.
 */
enum mp_status mp_options_spill_max(struct mp_options *options, uint64_t bytes);

/**
 * A second tier: `bytes` of the file at `path`, on a faster device than the store's, are a cache
 * of pages under `policy`, such as "tq". With `write_back` the two files are one store: see
 * docs/second-tier.md.
 */
enum mp_status mp_options_second_tier(struct mp_options *options,
                                      const char *path_of_cache,
                                      uint64_t bytes,
                                      const char *policy,
                                      bool write_back);

/**
 * Begins a snapshot of what is committed now.
 */
enum mp_status mp_snapshot_begin(const struct mp_store *store, struct mp_snapshot **out);

/**
 * Ends a snapshot; its cursors go on. NULL is no error.
 */
void mp_snapshot_end(struct mp_snapshot *snapshot);

/**
 * Copies the value that a key had. MP_NOT_FOUND: there was none, and the buffer is as it was.
 */
enum mp_status mp_snapshot_get(const struct mp_snapshot *snapshot,
                               const struct mp_tree *tree,
                               const void *key_data,
                               size_t key_len,
                               struct mp_buffer *out);

/**
 * Counts the keys that a range had; `range` may be NULL.
 */
enum mp_status mp_snapshot_count(const struct mp_snapshot *snapshot,
                                 const struct mp_tree *tree,
                                 const struct mp_range *range,
                                 uint64_t *count);

/**
 * Opens a cursor of what a snapshot shows; `range` may be NULL.
 */
enum mp_status mp_snapshot_cursor(const struct mp_snapshot *snapshot,
                                  const struct mp_tree *tree,
                                  const struct mp_range *range,
                                  struct mp_cursor **out);

/**
 * Returns the message of this thread's last error; empty if none has occurred. It stays until the
 * thread's next error. Never NULL, not to be freed.
 */
const char *mp_error_message(void);

/**
 * The name of a status, such as "MP_TIMEOUT". Never NULL, not to be freed.
 */
const char *mp_status_name(int32_t status);

/**
 * The library's version, such as "0.1.0". Never NULL, not to be freed.
 */
const char *mp_version(void);

/**
 * Opens the store at `path`, or creates one there; one that was not closed is recovered.
 * `options` may be NULL. One process at a time has a store open: MP_IN_USE otherwise.
 */
enum mp_status mp_open(const char *path_of_store,
                       const struct mp_options *options,
                       struct mp_store **out);

/**
 * Makes a store in memory, which is lost when it is closed. `options` may be NULL.
 */
enum mp_status mp_open_memory(const struct mp_options *options, struct mp_store **out);

/**
 * Closes a store: everything is durable then, and the store can be opened again at once, here or
 * in another process. The handle is gone whatever is returned. Of other handles that are left
 * (trees, transactions, cursors, snapshots), calls return MP_CLOSED. A transaction that is left
 * has not committed: the next opening undoes it, as after a crash. NULL is no error. In the child
 * of a fork nothing is done, and MP_IN_USE returned.
 */
enum mp_status mp_close(struct mp_store *store);

/**
 * Makes everything durable that is committed.
 */
enum mp_status mp_flush(const struct mp_store *store);

/**
 * Writes a checkpoint: a recovery has to read only what comes after it.
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
 * Closes a tree. NULL is no error.
 */
void mp_tree_close(struct mp_tree *tree);

/**
 * Removes the tree called `name` with all that is in it. MP_IN_USE: handles of it are open.
 */
enum mp_status mp_tree_drop(const struct mp_store *store, const char *name);

/**
 * Calls `visit` with the name of each tree, which is not zero-terminated and there during the
 * call only, until it returns something else than 0: then MP_CANCELLED is returned.
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
 * Commits a transaction. It is over, its handle is gone, and its cursors can only be closed,
 * whatever is returned. MP_OK: it is done, and durable as the transaction's durability tells. If
 * the log failed, whether it is durable shows when the store is opened again.
 */
enum mp_status mp_txn_commit(struct mp_txn *txn);

/**
 * Undoes what a transaction did. It is over and its handle is gone. NULL is no error.
 */
enum mp_status mp_txn_abort(struct mp_txn *txn);

/**
 * Makes a savepoint; gives its number.
 */
enum mp_status mp_txn_savepoint(const struct mp_txn *txn, size_t *number);

/**
 * Undoes what was done since a savepoint, which stays. Later ones, and all cursors of the
 * transaction, are over.
 */
enum mp_status mp_txn_rollback_to(const struct mp_txn *txn, size_t number);

/**
 * Runs `work` in a transaction and commits it if `work` returns MP_OK. If it lost in a deadlock,
 * it is aborted, and `work` is run again, for up to ten seconds: so `work` must do nothing else
 * that counts. If `work` returns something else, the transaction is aborted and that is returned;
 * a number that is no status becomes MP_CANCELLED. The message is that of the call within `work`
 * that failed with this status last, if one did. `work` may end the transaction itself, and
 * must neither throw nor jump out of the call. `options` may be NULL.
 */
enum mp_status mp_transact(const struct mp_store *store,
                           const struct mp_txn_options *options,
                           int32_t (*work)(struct mp_txn *txn, void *user),
                           void *user);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MILLPOND_H */

/** What a buffer begins as. */
#define MP_BUFFER_INIT { NULL, 0, 0 }
/** What the options of a transaction begin as: those of the store. */
#define MP_TXN_OPTIONS_INIT { -1, MP_SERIALIZABLE, -1 }
