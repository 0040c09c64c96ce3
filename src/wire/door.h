// The DynamoDB door: HTTP requests in, a Store's operations behind.
#pragma once

#include <functional>
#include <map>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "net/http.h"
#include "store/store.h"
#include "wire/operations.h"
#include "wire/request_metrics.h"
#include "wire/sigv4.h"

namespace tabella::wire {

// Thread-safe; borrows the store and the clock.
class Door {
 public:
  // With no keys, any credentials are accepted: people's local set-ups use odd ones.
  Door(store::Store& store, const Clock& clock, std::map<std::string, std::string, std::less<>> access_keys)
      : store_(store), verifier_(std::move(access_keys), clock) {}

  boost::asio::awaitable<void> handle(const net::HttpRequest& request, net::HttpResponse& response);

  void write_metrics(metrics::Exposition& out) const { metrics_.write(out); }

 private:
  boost::asio::awaitable<Wire<>> call(const net::HttpRequest& request, const NamedOperation* operation,
                                      std::string_view request_id, std::string& out);
  boost::asio::awaitable<Wire<>> execute(const net::HttpRequest& request, const NamedOperation* operation,
                                         std::string_view body, std::string& out);

  store::Store& store_;
  const SignatureVerifier verifier_;
  RequestMetrics metrics_;
};

inline constexpr size_t kMaxBody = 16u << 20;

}  // namespace tabella::wire
