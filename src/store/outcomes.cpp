#include "store/outcomes.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/ids.h"
#include "base/log.h"
#include "store/conditional.h"
#include "store/pause.h"

namespace tabella::store {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

namespace {

// Of the table; do not change.
constexpr const char* kKey = "key";
constexpr const char* kScope = "scope";
constexpr const char* kFingerprint = "fingerprint";
constexpr const char* kOwner = "owner";    // of the claim, unlike all others; absent: nobody works on it
constexpr const char* kBeat = "beat";      // counts up while the owner works
constexpr const char* kAnswer = "answer";  // absent: there is none yet
constexpr const char* kError = "error";    // which, where the answer is the message of one
constexpr const char* kExpires = "expires";

struct NamedError {
  ErrorCode code;
  const char* name;
};
// The errors that are answers, as they are called in the table; do not change.
constexpr auto kFinal = std::to_array<NamedError>({{ErrorCode::validation, "validation"},
                                                   {ErrorCode::resource_not_found, "resource_not_found"},
                                                   {ErrorCode::conditional_check_failed, "condition_failed"},
                                                   {ErrorCode::duplicate_item, "duplicate_item"},
                                                   {ErrorCode::limit_exceeded, "limit_exceeded"}});

constexpr milliseconds kFirstLook{5};
constexpr milliseconds kLongestLook{500};

const NamedError* final_error(const Error& error) {
  const auto* at = std::ranges::find(kFinal, error.code, &NamedError::code);
  return error.unsure || at == kFinal.end() ? nullptr : at;
}

bool has_ended(item::ItemView row, TimePoint now) {
  return !row.find(kOwner) && number_of(row, kExpires) <= epoch_milliseconds(now) / 1000;
}

Result<Outcomes::Answer> answer_of(item::ItemView row) {
  auto text = binary_of(row, kAnswer);
  if (!row.find(kError)) return Outcomes::Answer{.text = std::move(text), .repeated = true};
  const auto* at = std::ranges::find(kFinal, text_of(row, kError), &NamedError::name);
  return fail(at == kFinal.end() ? ErrorCode::internal : at->code, std::move(text));
}

}  // namespace

struct Outcomes::Claim {
  std::string owner;
  bool again = false;
};

bool Outcomes::is_owned(item::ItemView row, const Claim& claim) {
  return text_of(row, kOwner) == claim.owner;
}

// Somebody else's claim, and since when it has looked as it does.
struct Outcomes::Seen {
  std::string owner;
  int64_t beat = 0;
  Elapsed since{};
};

// At most one of the two; none: somebody else is at it.
struct Outcomes::Found {
  std::optional<Result<Answer>> answer;
  std::optional<Claim> claim;
};

// Work, and the coroutine that renews the claim to it.
struct Outcomes::Running {
  explicit Running(const asio::any_io_executor& executor) : pause(executor) {}
  asio::steady_timer pause;  // of the renewal
  bool done = false;
  Result<std::string> result;
};

Outcomes::Outcomes(Store& store, const Clock& clock, Options options)
    : store_(store), clock_(clock), options_(std::move(options)) {}

// By the key first: it spreads over the partitions, and a scope does not.
TablePlan Outcomes::plan(const std::string& table) {
  return plan_table(table, {{kKey, item::Type::S}, {kScope, item::Type::S}}, kExpires);
}

Item Outcomes::key_of(const Request& request) const {
  return Row().set(kKey, request.key).set(kScope, request.scope);
}

int64_t Outcomes::expiry() const { return (epoch_milliseconds(clock_.now()) / 1000) + options_.kept.count(); }

Put Outcomes::first_claim(const Request& request, const std::string& owner) const {
  return Put(options_.table, Row()
                                 .set(kKey, request.key)
                                 .set(kScope, request.scope)
                                 .set(kFingerprint, request.fingerprint)
                                 .set(kOwner, owner)
                                 .set(kBeat, 0)
                                 .set(kExpires, expiry()))
      .return_old_on_failure();
}

// An update that only the holder can make.
Update Outcomes::own(const Request& request, const std::string& owner) const {
  return Update(options_.table, key_of(request)).when(equals(kOwner, owner));
}

Async<Outcomes::Answer> Outcomes::once(Request request, Work work) {
  Seen seen;
  for (auto pause = kFirstLook;; pause = std::min(pause * 2, kLongestLook)) {
    TABELLA_CO_ASSIGN(auto found, co_await look(request, seen));
    if (found.answer) co_return std::move(*found.answer);
    if (found.claim) {
      TABELLA_CO_ASSIGN(auto answer, co_await hold(request, *found.claim, work));
      if (answer) co_return std::move(*answer);
      continue;
    }
    if (SteadyClock::now() >= request.deadline)
      co_return fail(ErrorCode::unavailable, "a request with the same idempotency key is still running");
    const auto left = std::chrono::ceil<milliseconds>(request.deadline - SteadyClock::now());
    co_await pause_for(std::min(pause, left));
  }
}

Async<Outcomes::Found> Outcomes::look(const Request& request, Seen& seen) {
  std::optional<Item> row;
  if (!seen.owner.empty()) {
    TABELLA_CO_ASSIGN(auto got, co_await store_.get_item(
                                    {.table = options_.table, .key = key_of(request), .consistent = true}));
    row = std::move(got.item);
  }
  if (!row) {
    const Claim claim{.owner = make_uuid()};
    auto put = co_await store_.put_item(first_claim(request, claim.owner).when(absent(kKey)));
    if (put) co_return Found{.claim = claim};
    if (!failed_its_condition(put.error())) co_return error_of(put);
    TABELLA_CO_ASSIGN(row, co_await item_behind(store_, put.error(), options_.table, key_of(request)));
    if (!row) co_return Found{};  // it has just gone
    if (is_owned(*row, claim)) co_return Found{.claim = claim};
  }
  co_return co_await take(request, *row, seen);
}

// What a row that is there comes down to: its answer, a claim where it is free, or nothing yet.
Async<Outcomes::Found> Outcomes::take(const Request& request, const Item& row, Seen& seen) {
  const auto owner = text_of(row, kOwner);
  const auto beat = number_of(row, kBeat);
  Claim claim{.owner = make_uuid()};
  // Time to live takes its time: what is over is over before the row is gone.
  if (has_ended(row, clock_.now())) {
    auto put = co_await store_.put_item(
        first_claim(request, claim.owner).when(absent(kOwner) && equals(kExpires, number_of(row, kExpires))));
    co_return co_await claimed(request, std::move(claim), std::move(put));
  }
  if (text_of(row, kFingerprint) != request.fingerprint)
    co_return fail(ErrorCode::idempotent_parameter_mismatch,
                   "the idempotency key was used for another request before");
  if (row.find(kAnswer)) co_return Found{.answer = answer_of(row)};
  if (!owner.empty()) {
    if (owner != seen.owner || beat != seen.beat)
      seen = {.owner = owner, .beat = beat, .since = clock_.elapsed()};
    if (clock_.elapsed() - seen.since < options_.lease) co_return Found{};
  }
  auto update =
      Update(options_.table, key_of(request)).set(kOwner, claim.owner).set(kBeat, 0).set(kExpires, expiry());
  if (owner.empty())
    update.when(absent(kOwner) && absent(kAnswer) && exists(kKey));
  else
    update.when(equals(kOwner, owner) && equals(kBeat, beat));
  claim.again = true;
  auto changed = co_await store_.update_item(std::move(update).return_old_on_failure());
  co_return co_await claimed(request, std::move(claim), std::move(changed));
}

// Whether a claim was made. An answer that was lost may have been to one that was.
Async<Outcomes::Found> Outcomes::claimed(const Request& request, Claim claim, Result<WriteResult> written) {
  if (written) co_return Found{.claim = std::move(claim)};
  if (!failed_its_condition(written.error())) co_return error_of(written);
  if (!written.error().unsure) co_return Found{};
  TABELLA_CO_ASSIGN(const auto row,
                    co_await item_behind(store_, written.error(), options_.table, key_of(request)));
  if (row && is_owned(*row, claim)) co_return Found{.claim = std::move(claim)};
  co_return Found{};
}

Async<std::optional<Outcomes::Answer>> Outcomes::hold(const Request& request, const Claim& claim,
                                                      const Work& work) {
  using asio::experimental::awaitable_operators::operator&&;
  Running running(co_await asio::this_coro::executor);
  co_await (perform(work, claim.again, running) && renew(request, claim.owner, running));
  auto& result = running.result;
  if (result && result->size() > kMostBytes)
    result = fail(ErrorCode::limit_exceeded,
                  fmt::format("the answer has {} bytes, and {} can be kept", result->size(), kMostBytes));
  if (!result && !final_error(result.error())) {
    co_await give_up(request, claim.owner);
    co_return error_of(result);
  }
  TABELLA_CO_ASSIGN(const bool written, co_await write_down(request, claim.owner, result));
  if (!written) co_return std::nullopt;
  if (!result) co_return error_of(result);
  co_return Answer{.text = std::move(*result)};
}

// Its result or what it threw, and the end of the renewal.
asio::awaitable<void> Outcomes::perform(const Work& work, bool again, Running& running) {
  try {
    running.result = co_await work(again);
  } catch (const std::exception& error) {
    running.result = fail(ErrorCode::internal, error.what());
  }
  running.done = true;
  running.pause.cancel();
}

asio::awaitable<void> Outcomes::renew(const Request& request, const std::string& owner, Running& running) {
  auto last = clock_.elapsed();
  for (int64_t beat = 1; !running.done;) {
    // In short steps: a clock that is moved is noticed.
    running.pause.expires_after(std::min(options_.lease / 6, milliseconds{200}));
    co_await running.pause.async_wait(asio::as_tuple(asio::use_awaitable));
    if (running.done || clock_.elapsed() - last < options_.lease / 3) continue;
    last = clock_.elapsed();
    const auto renewed = was_made(co_await store_.update_item(own(request, owner).set(kBeat, beat++)));
    if (!renewed)
      log::warning("the idempotency key {} could not be renewed: {}", request.key, renewed.error().message);
    else if (!*renewed)
      co_return;  // it was taken over; there is one answer all the same
  }
}

// Lets the next who asks do the work. Where that fails the end of the lease does it.
asio::awaitable<void> Outcomes::give_up(const Request& request, const std::string& owner) {
  const auto given = was_made(
      co_await store_.update_item(own(request, owner).remove(kOwner).remove(kBeat).set(kExpires, expiry())));
  if (!given)
    log::warning("the idempotency key {} could not be given up: {}", request.key, given.error().message);
}

// False: the key is somebody else's by now, or the answer is there and it was only not heard.
Async<bool> Outcomes::write_down(const Request& request, const std::string& owner,
                                 const Result<std::string>& result) {
  const auto begun = SteadyClock::now();
  for (auto pause = kFirstLook;; pause = std::min(pause * 2, kLongestLook)) {
    auto update = own(request, owner).remove(kOwner).remove(kBeat).set(kExpires, expiry());
    update.set(kAnswer, Binary(result ? *result : result.error().message));
    if (!result) update.set(kError, final_error(result.error())->name);
    auto written = was_made(co_await store_.update_item(std::move(update)));
    if (written) co_return *written;
    log::warning("the answer of the idempotency key {} could not be written down: {}", request.key,
                 written.error().message);
    if (SteadyClock::now() - begun > options_.lease) co_return error_of(written);
    co_await pause_for(pause);
  }
}

}  // namespace tabella::store
