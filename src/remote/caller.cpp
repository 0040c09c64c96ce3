#include "remote/caller.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/log.h"
#include "protocol/error_names.h"
#include "remote/result_json.h"
#include "store/pause.h"

namespace tabella::remote {

using boost::asio::awaitable;
using store::ErrorCode;
using SteadyClock = std::chrono::steady_clock;

namespace {

// Whether the body is what was sent, as far as its checksum tells.
bool is_intact(const net::HttpReply& reply) {
  const auto header = reply.header("x-amz-crc32");
  if (header.empty()) return true;
  uint32_t sent = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), sent);
  return error == std::errc{} && crc32(reply.body()) == sent;
}

// An endpoint's words, as they can stand in a log.
std::string one_line(std::string message) {
  constexpr size_t kLongest = 1000;
  if (message.size() > kLongest) {
    size_t end = kLongest;
    while (end > 0 && (static_cast<uint8_t>(message[end]) & 0xc0) == 0x80) --end;  // not within a character
    message.resize(end);
  }
  std::ranges::replace_if(message, [](char c) { return static_cast<uint8_t>(c) < 0x20; }, ' ');
  return message;
}

// The signature was dated by a clock that is wrong.
bool is_about_time(std::string_view name, std::string_view message) {
  return name == "RequestTimeTooSkewed" || name == "RequestExpired" || name == "RequestInTheFuture" ||
         (name == "InvalidSignatureException" &&
          (message.starts_with("Signature expired") || message.starts_with("Signature not yet current")));
}

bool is_about_expiry(std::string_view name) {
  return name == "ExpiredTokenException" || name == "ExpiredToken" || name == "TokenRefreshRequired";
}

// Nothing stood in the transaction's way but others who were faster: it was not made, and can be.
bool was_only_crowded(const std::vector<store::CancellationReason>& reasons) {
  const auto passing = [](const store::CancellationReason& reason) {
    return reason.code == "TransactionConflict" || reason.code == "ThrottlingError" ||
           reason.code == "ProvisionedThroughputExceeded";
  };
  const auto counts = [](const store::CancellationReason& reason) { return reason.code != "None"; };
  return std::ranges::any_of(reasons, passing) &&
         std::ranges::all_of(reasons, [&](const auto& r) { return !counts(r) || passing(r); });
}

// Nothing was done, and it can be asked for again.
bool is_refusal_for_now(Operation operation, int status, ErrorCode code, std::string_view name) {
  constexpr int kTooManyRequests = 429;
  return code == ErrorCode::throttled || code == ErrorCode::transaction_conflict ||
         name == "TransactionInProgressException" || status == kTooManyRequests ||
         // What throttling is called there.
         (operation.streams && code == ErrorCode::limit_exceeded);
}

JsonDocument& document_of_thread() {
  thread_local JsonDocument document;
  return document;
}

}  // namespace

Caller::Caller(CallerOptions options, const Clock& clock)
    : options_(std::move(options)),
      credentials_(options_.credentials, clock),
      signer_(options_.endpoint.region, clock),
      retry_(options_.retry),
      items_(options_.endpoint.items, options_.connections),
      streams_(options_.endpoint.streams, options_.connections) {}

store::Async<void> Caller::call(Operation operation, std::string_view body, Repeat repeat, const Read& read,
                                Deadline deadline) {
  const auto begun = SteadyClock::now();
  bool unsure = false;
  int drawn = 0;
  for (int number = 1;; ++number) {
    auto done = co_await attempt(operation, body,
                                 std::min(deadline, SteadyClock::now() + options_.attempt_timeout), read);
    if (done) {
      retry_.succeeded(drawn);
      ++succeeded_;
      latency_.observe(SteadyClock::now() - begun);
      co_return store::Result<>{};
    }
    auto& failure = done.error();
    unsure = unsure || (failure.unknown && repeat != Repeat::read);
    const auto pause = retry_.pause_before(number + 1);
    const bool allowed = failure.again && (repeat != Repeat::never || !failure.unknown);
    const int cost = retry_.cost(failure.timed_out);
    if (!allowed || number >= retry_.attempts() || SteadyClock::now() + pause >= deadline ||
        !retry_.draw(cost)) {
      failure.error.unsure = unsure;
      if (number > 1)
        failure.error.message = fmt::format("{} (after {} tries)", failure.error.message, number);
      const std::lock_guard lock(mutex_);
      ++failed_[std::string(protocol::short_name(protocol::error_type(failure.error.code)))];
      co_return std::unexpected(std::move(failure.error));
    }
    drawn = cost;
    ++retried_;
    log::debug("{} failed, and is tried again: {}", operation.name, failure.error.message);
    co_await store::pause_for(pause);
  }
}

awaitable<std::expected<void, Caller::Failure>> Caller::attempt(Operation operation, std::string_view body,
                                                                Deadline deadline, const Read& read) {
  auto credentials = co_await credentials_.get(deadline);
  if (!credentials)
    co_return std::unexpected(
        Failure{.error = {ErrorCode::unavailable, std::move(credentials.error().message)},
                .again = credentials.error().passing});
  auto& client = operation.streams ? streams_ : items_;
  const auto host = client.server().authority();
  std::string target(operation.streams ? "DynamoDBStreams_20120810." : "DynamoDB_20120810.");
  target.append(operation.name);
  std::string head;
  head.reserve(640);
  head.append("POST / HTTP/1.1\r\nHost: ").append(host);
  head.append("\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: ").append(target);
  head.append("\r\nContent-Length: ").append(fmt::format_int(body.size()).c_str()).append("\r\n");
  const auto signed_at = signer_.append_headers(head, *credentials, host, target, body);
  head.append("\r\n");
  const auto reply = co_await client.send(head, body, deadline);
  if (!reply) {
    const auto& error = reply.error();
    co_return std::unexpected(Failure{.error = {ErrorCode::unavailable, error.message},
                                      .again = true,
                                      .unknown = error.stage >= net::ClientError::Stage::waiting,
                                      .timed_out = error.timed_out});
  }
  const auto unreadable = [](const char* why) {
    return std::unexpected(Failure{.error = {ErrorCode::unavailable, why}, .again = true, .unknown = true});
  };
  if (!is_intact(*reply)) co_return unreadable("the answer was damaged on its way");
  if (reply->status() != 200)
    co_return std::unexpected(understand(operation, *reply, {*credentials, signed_at}));
  const bool empty = operation.answers_nothing && reply->body().empty();
  const auto json = document_of_thread().parse(empty ? "{}" : reply->body());
  if (!json || !read(*json)) co_return unreadable("the answer is not DynamoDB's");
  co_return std::expected<void, Failure>{};
}

// What an answer other than 200 means.
Caller::Failure Caller::understand(Operation operation, const net::HttpReply& reply, const Signed& with) {
  ErrorBody body;
  const auto json = document_of_thread().parse(reply.body());
  if (!json || !read(*json, body)) body = {};
  const auto name = protocol::short_name(body.type);
  const auto code = protocol::error_code(body.type);
  const bool servers_fault = reply.status() >= 500;
  Failure failure{.error = {code.value_or(servers_fault ? ErrorCode::unavailable : ErrorCode::validation),
                            one_line(std::move(body.message))}};
  auto& error = failure.error;
  error.item = std::move(body.item);
  error.reasons = std::move(body.reasons);
  if (!code)
    error.message = fmt::format("the endpoint answered {} {}: {}", reply.status(), name, error.message);
  if (is_about_time(name, error.message)) {
    failure.again = signer_.correct_by(reply.header("date"), with.at);
  } else if (is_about_expiry(name)) {
    credentials_.forget(with.credentials);
    failure.again = with.credentials->expires.has_value();
  } else if (error.code == ErrorCode::transaction_canceled) {
    failure.again = was_only_crowded(error.reasons);
  } else if (is_refusal_for_now(operation, reply.status(), error.code, name)) {
    failure.again = true;
  } else if (servers_fault) {
    failure.again = true;
    failure.unknown = true;
  }
  return failure;
}

void Caller::write_metrics(metrics::Exposition& out) const {
  constexpr std::string_view kName = "tabella_store_calls_total";
  constexpr std::string_view kHelp = "Calls to the remote store, by how they ended.";
  out.counter(kName, kHelp, static_cast<double>(succeeded_.load()), {{"result", "ok"}});
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, count] : failed_)
      out.counter(kName, kHelp, static_cast<double>(count), {{"result", name}});
  }
  out.counter("tabella_store_retries_total", "Attempts at the remote store that were made again.",
              static_cast<double>(retried_.load()));
  out.histogram("tabella_store_call_seconds", "Time of calls that succeeded, retries included.", latency_);
}

}  // namespace tabella::remote
