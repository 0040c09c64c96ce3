// The store that a command uses, wherever it is: the embedded engine in its folder, or a DynamoDB somewhere
// else.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "app/store_options.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "engine/database.h"
#include "store/long_work.h"
#include "store/store.h"

namespace tabella::app {

// Thread-safe, but for close().
class OpenStore {
 public:
  OpenStore() = default;
  virtual ~OpenStore() = default;
  OpenStore(const OpenStore&) = delete;
  OpenStore& operator=(const OpenStore&) = delete;

  virtual store::Store& store() = 0;
  virtual std::string place() const = 0;  // for people: the folder, or the endpoint
  virtual bool shared() const = 0;        // other processes may be using it
  // What is wrong with it, as far as it knows; empty: nothing.
  virtual std::string known_problem() const = 0;
  // Likewise, after asking it.
  virtual boost::asio::awaitable<std::string> problem() = 0;
  virtual void write_metrics(metrics::Exposition& out) const = 0;
  // Nobody uses it any more: everything is on disk when it returns.
  virtual void close() = 0;
};

// How the embedded engine works.
struct EngineTuning {
  engine::Durability durability = engine::Durability::sync;
  int max_open_files = -1;  // -1: as many as it wants
  std::optional<uint64_t> min_free = {};
  store::LongWork long_work = {};
};

// All throw std::runtime_error with a sentence for the user.
std::unique_ptr<OpenStore> open_embedded(const std::filesystem::path& folder, const EngineTuning& tuning,
                                         const Clock& clock);
std::unique_ptr<OpenStore> open_remote(const RemoteStoreOptions& options, const Clock& clock);
// For a command that is not the server: a folder must be there. If a server has it open, the command goes
// through that server's DynamoDB API, or is refused.
enum class WhileServed { go_through_server, refuse };
std::unique_ptr<OpenStore> open_for_command(const StoreOptions& options, const Clock& clock,
                                            WhileServed while_served);

// Runs a command on the store, through its server where there is one. Its exit code; an error is printed,
// and 1.
using StoreCommand = std::function<store::Async<int>(store::Store& store, const Clock& clock)>;
int run_on_store(const StoreOptions& options, const StoreCommand& command);

// The server of a folder says where its DynamoDB API is, for as long as this lives.
class ServingNote {
 public:
  ServingNote(const std::filesystem::path& folder, const std::string& url);
  ~ServingNote();
  ServingNote(const ServingNote&) = delete;
  ServingNote& operator=(const ServingNote&) = delete;

 private:
  const std::filesystem::path file_;
};

}  // namespace tabella::app
