// Signs requests to DynamoDB.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "remote/credentials.h"

namespace tabella::remote {

// Thread-safe.
class Signer {
 public:
  Signer(std::string region, const Clock& clock) : region_(std::move(region)), clock_(clock) {}

  // Appends the headers that sign the request — X-Amz-Date, Authorization, X-Amz-Security-Token — each with
  // its line end. Returns the time that it is dated by.
  TimePoint append_headers(std::string& out, const std::shared_ptr<const Credentials>& credentials,
                           std::string_view host, std::string_view target, std::string_view body);

  // The server's clock, by its Date header: what is signed from now on is dated by it. True if what was dated
  // by `signed_at` was so far off that it may have been refused for it.
  bool correct_by(std::string_view date, TimePoint signed_at);

 private:
  // Good for one day; made once.
  struct Key {
    std::shared_ptr<const Credentials> credentials;
    std::string date;
    std::string key;
  };
  std::shared_ptr<const Key> key_for(const std::shared_ptr<const Credentials>& credentials,
                                     std::string_view date);

  const std::string region_;
  const Clock& clock_;
  std::atomic<std::chrono::seconds> skew_{std::chrono::seconds{0}};
  std::mutex mutex_;
  std::shared_ptr<const Key> key_;  // guarded by mutex_
};

}  // namespace tabella::remote
