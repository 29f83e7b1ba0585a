// Transfers between accounts by several threads, with handles that close themselves.
//
//   c++ -std=c++17 transfer.cpp $(pkg-config --cflags --libs millpond) -o transfer && ./transfer
#include <millpond.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

// A status as an exception; MP_OK and MP_NOT_FOUND come back.
mp_status checked(mp_status status) {
    if (status < 0) throw std::runtime_error(std::string(mp_status_name(status)) + ": " + mp_error_message());
    return status;
}

struct Close {
    void operator()(mp_store *store) const { mp_close(store); }
    void operator()(mp_tree *tree) const { mp_tree_close(tree); }
    void operator()(mp_cursor *cursor) const { mp_cursor_close(cursor); }
    void operator()(mp_options *options) const { mp_options_free(options); }
};
template <typename T> using Handle = std::unique_ptr<T, Close>;

struct Buffer {
    mp_buffer buffer = MP_BUFFER_INIT;
    Buffer() = default;
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() { mp_buffer_free(&buffer); }
    std::string text() const { return {static_cast<const char *>(buffer.data), buffer.len}; }
};

struct Transfer {
    const mp_tree *accounts;
    std::string from, to;
};

// C++ exceptions must not cross mp_transact: statuses only.
int32_t transfer(mp_txn *txn, void *user) {
    const auto &what = *static_cast<const Transfer *>(user);
    for (const auto *name : {&what.from, &what.to}) {
        Buffer balance;
        mp_status status =
            mp_get_for_update(what.accounts, txn, name->data(), name->size(), &balance.buffer);
        if (status != MP_OK) return status;
        const long now = std::stol(balance.text()) + (name == &what.from ? -1 : 1);
        const std::string text = std::to_string(now);
        status = mp_put(what.accounts, txn, name->data(), name->size(), text.data(), text.size());
        if (status != MP_OK) return status;
    }
    return MP_OK;
}

} // namespace

int main() try {
    Handle<mp_options> options(mp_options_new());
    checked(mp_options_memory(options.get(), 32 << 20));
    mp_store *opened = nullptr;
    checked(mp_open_memory(options.get(), &opened));
    Handle<mp_store> store(opened);
    mp_tree *tree = nullptr;
    checked(mp_tree_open(store.get(), "accounts", MP_CREATE, &tree));
    Handle<mp_tree> accounts(tree);

    const std::vector<std::string> names = {"ada", "grace", "kurt"};
    for (const auto &name : names)
        checked(mp_put(accounts.get(), nullptr, name.data(), name.size(), "1000", 4));

    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
            for (std::size_t step = 0; step < 200; ++step) {
                const auto &from = names[(thread + step) % 3], &to = names[(thread + 2 * step + 1) % 3];
                if (from == to) continue;
                Transfer what{accounts.get(), from, to};
                checked(mp_transact(store.get(), nullptr, transfer, &what));
            }
        });
    for (auto &thread : threads) thread.join();

    long sum = 0;
    mp_cursor *at = nullptr;
    checked(mp_cursor_open(accounts.get(), nullptr, nullptr, &at));
    Handle<mp_cursor> cursor(at);
    while (checked(mp_cursor_next(cursor.get())) == MP_OK) {
        const void *value;
        std::size_t len;
        checked(mp_cursor_entry(cursor.get(), nullptr, nullptr, &value, &len));
        sum += std::stol(std::string(static_cast<const char *>(value), len));
    }
    std::printf("sum: %ld\n", sum);
    return sum == 3000 ? 0 : 1;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
