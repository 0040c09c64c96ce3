// Idempotency keys: the same key has the same answer, also while the first request with it still runs.
//
// A key is a row of a table of the store. Whoever comes first claims it by a conditional put, does the work
// and writes the answer down; whoever comes later with the same request gets that answer, and waits for it
// where it is not there yet. Another request under the same key is refused.
//
// The holder renews its claim while it works. A claim that stands still for a lease's length by the
// observer's own clock is taken over, and the work is done again: it is told so, and looks for what was done
// already. So work is done at least once, and once unless its process dies, is cut off from the store, or the
// work itself fails in a way that may pass. Whatever happens, all who asked get one answer.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "base/clock.h"
#include "store/rows.h"
#include "store/store.h"
#include "store/tables.h"

namespace tabella::store {

// Thread-safe; a call of once() stays on the one thread of its executor.
class Outcomes {
 public:
  struct Options {
    std::string table = "tabella-outcomes";
    std::chrono::milliseconds lease{30'000};
    std::chrono::seconds kept{24 * 3600};  // answers, and keys whose work failed
  };

  struct Request {
    std::string scope;  // whose keys these are: a system and its caller
    std::string key;
    std::string fingerprint;  // the same for the same request: a hash of it
    std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  };

  struct Answer {
    std::string text;
    bool repeated = false;  // it was there already
  };

  // `again`: somebody has begun it before, and may have done some or all of it.
  //
  // Errors that are the request's own (validation, resource_not_found, conditional_check_failed,
  // duplicate_item, limit_exceeded) are answers like others, and so is an answer that says in its text what
  // went wrong. After any other error, one that is unsure or an exception the key is free again: the next who
  // asks does the work.
  using Work = std::function<Async<std::string>(bool again)>;

  // The longest answer that is kept. A longer one becomes the error limit_exceeded, for all who ask.
  static constexpr size_t kMostBytes = 300 * 1024;

  Outcomes(Store& store, const Clock& clock, Options options);

  static TablePlan plan(const std::string& table);

  // The answer of `work`, or the one that it has had before. Errors of its own:
  // idempotent_parameter_mismatch where the key was used for another request, unavailable where the first is
  // still running at the deadline, or its answer could not be written down.
  Async<Answer> once(Request request, Work work);

 private:
  struct Claim;
  struct Seen;
  struct Found;
  struct Running;

  Item key_of(const Request& request) const;
  Put first_claim(const Request& request, const std::string& owner) const;
  Update own(const Request& request, const std::string& owner) const;
  int64_t expiry() const;

  // The row of the key, as it is; or the claim to it.
  Async<Found> look(const Request& request, Seen& seen);
  Async<Found> take(const Request& request, const Item& row, Seen& seen);
  Async<Found> claimed(const Request& request, Claim claim, Result<WriteResult> written);
  static bool is_owned(item::ItemView row, const Claim& claim);
  // Nothing: the claim was lost meanwhile, and another answer may be there.
  Async<std::optional<Answer>> hold(const Request& request, const Claim& claim, const Work& work);
  boost::asio::awaitable<void> perform(const Work& work, bool again, Running& running);
  boost::asio::awaitable<void> renew(const Request& request, const std::string& owner, Running& running);
  boost::asio::awaitable<void> give_up(const Request& request, const std::string& owner);
  Async<bool> write_down(const Request& request, const std::string& owner, const Result<std::string>& result);

  Store& store_;
  const Clock& clock_;
  const Options options_;
};

}  // namespace tabella::store
