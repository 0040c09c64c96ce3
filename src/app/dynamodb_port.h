// The DynamoDB port: the embedded store, as AWS's SDKs know it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/open_store.h"
#include "app/server_options.h"
#include "net/limits.h"
#include "net/server.h"
#include "wire/door.h"

namespace tabella::app {

// Borrows all it is given. Listens at once; throws std::runtime_error with a sentence for the user.
class DynamoDbPort {
 public:
  // `own_tables` are those of our systems: they are not listed unless that is asked for.
  DynamoDbPort(const ServeOptions& options, OpenStore& store, const Clock& clock, store::LongWork long_work,
               std::set<std::string> own_tables, net::IoThreads& threads, net::Limits& limits);

  void write_metrics(metrics::Exposition& out) const { door_.write_metrics(out); }
  std::vector<std::string> announce() const;
  void stop(std::chrono::milliseconds grace) { server_.stop(grace); }

 private:
  std::string url(const std::string& host) const;

  const ServeOptions& options_;
  wire::Door door_;
  net::HttpServer server_;
  const ServingNote note_;
};

}  // namespace tabella::app
