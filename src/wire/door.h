// The DynamoDB door: HTTP requests in, a Store's operations behind.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "net/http.h"
#include "net/known_hosts.h"
#include "protocol/sigv4.h"
#include "store/long_work.h"
#include "store/store.h"
#include "wire/operations.h"
#include "wire/request_metrics.h"

namespace tabella::wire {

// Thread-safe; borrows the store and the clock.
class Door {
 public:
  struct Options {
    // With none, any credentials are accepted: people's local set-ups use odd ones.
    std::map<std::string, std::string, std::less<>> access_keys;
    net::KnownHosts hosts;
    std::string cors_origin;                     // whose pages may call; empty: nobody's
    std::function<std::string()> problem = {};   // what the store suffers from; empty: nothing
    std::set<std::string> unlisted_tables = {};  // they can be used by whoever knows their names
    store::LongWork long_work = {};
  };

  Door(store::Store& store, const Clock& clock, Options options)
      : store_(store), options_(std::move(options)), verifier_(options_.access_keys, clock, "dynamodb") {}

  boost::asio::awaitable<void> handle(const net::HttpRequest& request, net::HttpResponse& response);

  void write_metrics(metrics::Exposition& out) const { metrics_.write(out); }

 private:
  boost::asio::awaitable<Result<>> call(const net::HttpRequest& request, const NamedOperation* operation,
                                        std::string_view request_id, std::string& out);
  boost::asio::awaitable<Result<>> execute(const net::HttpRequest& request, const NamedOperation* operation,
                                           std::string_view body, std::string& out);

  void add_cors(const net::HttpRequest& request, net::HttpResponse& response) const;
  boost::asio::awaitable<void> serve(const net::HttpRequest& request, const NamedOperation* operation,
                                     std::string_view request_id, net::HttpResponse& response);

  store::Store& store_;
  const Options options_;
  const protocol::SignatureVerifier verifier_;
  RequestMetrics metrics_;
};

inline constexpr size_t kMaxBody = 16u << 20;

}  // namespace tabella::wire
