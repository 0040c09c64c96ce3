// Makes one call to a DynamoDB endpoint: signed, within its time, made again where that is right, its answer
// checked.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/metrics.h"
#include "net/client.h"
#include "remote/credentials.h"
#include "remote/endpoint.h"
#include "remote/repeat.h"
#include "remote/retry.h"
#include "remote/signer.h"
#include "store/store.h"

namespace tabella::remote {

struct CallerOptions {
  Endpoint endpoint;
  CredentialOptions credentials;
  RetryOptions retry;
  std::chrono::milliseconds attempt_timeout{10'000};
  std::chrono::milliseconds call_timeout{60'000};  // with all its retries
  net::ClientOptions connections;
};

struct Operation {
  std::string_view name;
  bool streams = false;          // one of DynamoDB Streams
  bool answers_nothing = false;  // an empty body is its answer
};

// Thread-safe.
class Caller {
 public:
  // Reads an answer that has come; false if it makes no sense.
  using Read = std::function<bool(JsonValue)>;

  Caller(CallerOptions options, const Clock& clock);

  // When a call that begins now has to be over.
  Deadline usual_deadline() const { return std::chrono::steady_clock::now() + options_.call_timeout; }
  store::Async<void> call(Operation operation, std::string_view body, Repeat repeat, const Read& read,
                          Deadline deadline);

  const Retry& retry() const { return retry_; }

  void write_metrics(metrics::Exposition& out) const;

 private:
  // What became of one attempt.
  struct Failure {
    store::Error error;
    bool again = false;    // it may help to try again
    bool unknown = false;  // it may have taken effect
    bool timed_out = false;
  };
  boost::asio::awaitable<std::expected<void, Failure>> attempt(Operation operation, std::string_view body,
                                                               Deadline deadline, const Read& read);
  // What a request was signed with, should it be refused for that.
  struct Signed {
    std::shared_ptr<const Credentials> credentials;
    TimePoint at;
  };
  Failure understand(Operation operation, const net::HttpReply& reply, const Signed& with);

  const CallerOptions options_;
  CredentialChain credentials_;
  Signer signer_;
  Retry retry_;
  net::HttpClient items_;
  net::HttpClient streams_;

  metrics::Counter succeeded_ = 0;
  metrics::Counter retried_ = 0;
  metrics::Histogram latency_{metrics::latency_bounds()};
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> failed_;  // guarded by mutex_; calls, by what they ended with
};

}  // namespace tabella::remote
