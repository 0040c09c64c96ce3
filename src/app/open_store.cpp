#include "app/open_store.h"

#include <fstream>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "engine/engine.h"
#include "remote/remote_store.h"

namespace tabella::app {

using boost::asio::awaitable;

namespace {

class EmbeddedStore final : public OpenStore {
 public:
  EmbeddedStore(const std::filesystem::path& folder, const EngineTuning& tuning, const Clock& clock)
      : folder_(folder.string()),
        engine_({.folder = folder,
                 .durability = tuning.durability,
                 .max_open_files = tuning.max_open_files,
                 .min_free = tuning.min_free,
                 .long_work = tuning.long_work},
                clock) {}

  store::Store& store() override { return engine_; }
  std::string place() const override { return folder_; }
  bool shared() const override { return false; }
  std::string known_problem() const override { return engine_.problem(); }
  awaitable<std::string> problem() override { co_return engine_.problem(); }
  void write_metrics(metrics::Exposition& out) const override { engine_.write_metrics(out); }
  void close() override { engine_.close(); }

 private:
  const std::string folder_;
  engine::Engine engine_;
};

class StoreElsewhere final : public OpenStore {
 public:
  StoreElsewhere(const RemoteStoreOptions& options, const Clock& clock)
      : endpoint_(options.endpoint), store_(calls_of(options), clock) {}

  store::Store& store() override { return store_; }
  std::string place() const override {
    return fmt::format("{}://{}", endpoint_.items.tls ? "https" : "http", endpoint_.items.authority());
  }
  bool shared() const override { return true; }
  std::string known_problem() const override { return {}; }
  awaitable<std::string> problem() override {
    const auto answered = co_await store_.ping(std::chrono::seconds{2});
    co_return answered ? "" : "the store does not answer: " + answered.error().message;
  }
  void write_metrics(metrics::Exposition& out) const override { store_.write_metrics(out); }
  void close() override {}

 private:
  static remote::RemoteOptions calls_of(const RemoteStoreOptions& options) {
    remote::RemoteOptions remote;
    remote.calls.endpoint = options.endpoint;
    remote.calls.credentials = options.credentials;
    remote.calls.connections.ca_file = options.ca_file;
    return remote;
  }

  const remote::Endpoint endpoint_;
  remote::RemoteStore store_;
};

constexpr const char* kServing = "SERVING";

// Where the process that has the folder open serves it; empty: nobody says.
std::string served_at(const std::filesystem::path& folder) {
  std::ifstream file(folder / kServing);
  std::string url;
  std::getline(file, url);
  return url;
}

}  // namespace

std::unique_ptr<OpenStore> open_embedded(const std::filesystem::path& folder, const EngineTuning& tuning,
                                         const Clock& clock) {
  return std::make_unique<EmbeddedStore>(folder, tuning, clock);
}

std::unique_ptr<OpenStore> open_remote(const RemoteStoreOptions& options, const Clock& clock) {
  return std::make_unique<StoreElsewhere>(options, clock);
}

std::unique_ptr<OpenStore> open_for_command(const StoreOptions& options, const Clock& clock,
                                            WhileServed while_served) {
  if (options.remote) return open_remote(*options.remote, clock);
  // A wrong folder should not become an empty store.
  if (!std::filesystem::exists(options.data / "CURRENT"))
    throw std::runtime_error(fmt::format("there is no store in {}", options.data.string()));
  // Where that is not good enough, opening it says so.
  if (while_served == WhileServed::refuse || !engine::Database::is_in_use(options.data))
    return open_embedded(options.data, {}, clock);
  const auto url = served_at(options.data);
  auto endpoint = url.empty() ? std::unexpected(std::string("it does not say where it serves"))
                              : remote::parse_endpoint(url, "us-east-1");
  if (!endpoint)
    throw std::runtime_error(fmt::format("the data folder {} is in use by another process: {}",
                                         options.data.string(), endpoint.error()));
  RemoteStoreOptions serving;
  serving.endpoint = std::move(*endpoint);
  serving.credentials.any_will_do = true;
  serving.ca_file = options.ca_file;
  return open_remote(serving, clock);
}

ServingNote::ServingNote(const std::filesystem::path& folder, const std::string& url)
    : file_(folder / kServing) {
  std::ofstream(file_, std::ios::trunc) << url << "\n";
}

ServingNote::~ServingNote() {
  std::error_code ignored;  // the next server writes its own
  std::filesystem::remove(file_, ignored);
}

int run_on_store(const StoreOptions& options, const StoreCommand& command) {
  try {
    const SystemClock clock;
    const auto store = open_for_command(options, clock, WhileServed::go_through_server);
    boost::asio::io_context context(1);
    auto result = boost::asio::co_spawn(context, command(store->store(), clock), boost::asio::use_future);
    context.run();
    const auto done = result.get();
    store->close();
    if (done) return *done;
    fmt::print(stderr, "tabella: {}\n", done.error().message);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tabella: {}\n", error.what());
  }
  return 1;
}

}  // namespace tabella::app
