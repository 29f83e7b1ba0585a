/* A crash test, more of one than that in docs/c.md: a child writes and reports each commit that was acknowledged, its
 * parent kills it with SIGKILL at any time, opens the store again and looks for all of them.
 *
 *   cc crash.c $(pkg-config --cflags --libs millpond) -o crash && ./crash /tmp/crash.mp 100
 */
#define _POSIX_C_SOURCE 200809L
#include <millpond.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void check(mp_status status, const char *what) {
    if (status < 0) {
        fprintf(stderr, "%s: %s: %s\n", what, mp_status_name(status), mp_error_message());
        exit(1);
    }
}

struct pond {
    mp_store *store;
    mp_tree *left, *right;
};

static struct pond open_pond(const char *path) {
    struct pond pond;
    mp_options *options = mp_options_new();
    check(mp_options_memory(options, 16 << 20), "memory");
    check(mp_options_log_gap(options, 4 << 20), "log gap"); /* checkpoints are in the way, too */
    check(mp_open(path, options, &pond.store), "open");
    mp_options_free(options);
    check(mp_tree_open(pond.store, "left", MP_OPEN_OR_CREATE, &pond.left), "left");
    check(mp_tree_open(pond.store, "right", MP_OPEN_OR_CREATE, &pond.right), "right");
    return pond;
}

static void close_pond(struct pond pond) {
    mp_tree_close(pond.left);
    mp_tree_close(pond.right);
    check(mp_close(pond.store), "close");
}

/* The value of a number: of any length up to 600 bytes, and told by the number. */
static size_t value_of(uint64_t number, char *value) {
    size_t len = number * 7919 % 600 + 1;
    memset(value, 'a' + (int)(number % 26), len);
    return len;
}

/* Writes numbers from `next` on into both trees, and each to `out` once it is committed. */
static void write_for_ever(const char *path, uint64_t next, int out) {
    struct pond pond = open_pond(path);
    mp_buffer key = MP_BUFFER_INIT;
    char value[600];
    for (;; next++) {
        size_t len = value_of(next, value);
        mp_txn *txn = NULL;
        check(mp_txn_begin(pond.store, NULL, &txn), "begin");
        check(mp_key_clear(&key), "key");
        check(mp_key_push_u64(&key, next), "key");
        check(mp_put(pond.left, txn, key.data, key.len, value, len), "left");
        check(mp_put(pond.right, txn, key.data, key.len, value, len), "right");
        check(mp_txn_commit(txn), "commit");
        if (write(out, &next, sizeof next) != sizeof next) _exit(1);
    }
}

/* All of `tree` is 0, 1, 2, …; returns how many there are. */
static uint64_t numbers_in(mp_tree *tree) {
    mp_cursor *cursor = NULL;
    uint64_t count = 0;
    char value[600];
    check(mp_cursor_open(tree, NULL, NULL, &cursor), "cursor");
    mp_status at;
    for (at = mp_cursor_first(cursor); at == MP_OK; at = mp_cursor_next(cursor), count++) {
        mp_slice key;
        const void *found;
        size_t len;
        uint64_t number;
        check(mp_cursor_entry(cursor, &key.data, &key.len, &found, &len), "entry");
        check(mp_key_take_u64(&key, &number), "number");
        size_t wanted = value_of(number, value);
        if (number != count || len != wanted || memcmp(found, value, len) != 0) {
            fprintf(stderr, "number %llu is not what was written\n", (unsigned long long)count);
            exit(1);
        }
    }
    check(at, "cursor");
    mp_cursor_close(cursor);
    return count;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE ROUNDS\n", argv[0]);
        return 2;
    }
    int rounds = atoi(argv[2]);
    uint64_t next = 0, all = 0;
    srand(7);
    for (int round = 0; round < rounds; round++) {
        int ends[2];
        if (pipe(ends) != 0) return 1;
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            close(ends[0]);
            write_for_ever(argv[1], next, ends[1]);
        }
        close(ends[1]);
        /* After so many commits, or as many more as it makes while it is killed. */
        int until = rand() % 200;
        uint64_t number, acknowledged = next;
        for (int read_so_far = 0; read_so_far <= until; read_so_far++) {
            if (read(ends[0], &number, sizeof number) != sizeof number) {
                fprintf(stderr, "the writer ended by itself\n");
                return 1;
            }
            acknowledged = number + 1;
        }
        kill(child, SIGKILL);
        while (read(ends[0], &number, sizeof number) == sizeof number) acknowledged = number + 1;
        close(ends[0]);
        if (waitpid(child, NULL, 0) != child) return 1;

        struct pond pond = open_pond(argv[1]);
        uint64_t left = numbers_in(pond.left), right = numbers_in(pond.right);
        if (left != right || left < acknowledged || left > acknowledged + 1) {
            fprintf(stderr, "round %d: %llu and %llu there, %llu acknowledged\n", round,
                    (unsigned long long)left, (unsigned long long)right,
                    (unsigned long long)acknowledged);
            return 1;
        }
        all += acknowledged - next;
        next = left;
        close_pond(pond);
    }
    printf("%d kills, %llu commits acknowledged, none lost\n", rounds, (unsigned long long)all);
    return 0;
}
