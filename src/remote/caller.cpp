#include "remote/caller.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/checksum.h"
#include "base/log.h"
#include "protocol/error_names.h"
#include "remote/result_json.h"

namespace tabella::remote {

using boost::asio::awaitable;
using store::ErrorCode;
using SteadyClock = std::chrono::steady_clock;

namespace {

// The body, unless its checksum says that it is not what was sent.
bool is_intact(const net::HttpReply& reply) {
  const auto header = reply.header("x-amz-crc32");
  if (header.empty()) return true;
  uint32_t sent = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), sent);
  return error == std::errc{} && crc32(reply.body()) == sent;
}

std::string_view short_name(std::string_view type) {
  const auto hash = type.rfind('#');
  return hash == std::string_view::npos ? type : type.substr(hash + 1);
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

item::JsonDocument& document_of_thread() {
  thread_local item::JsonDocument document;
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

store::Async<void> Caller::call(Operation operation, std::string_view body, Repeat repeat, const Read& read) {
  return call(operation, body, repeat, read, options_.call_timeout);
}

store::Async<void> Caller::call(Operation operation, std::string_view body, Repeat repeat, const Read& read,
                                std::chrono::milliseconds within) {
  const auto begun = SteadyClock::now();
  const auto deadline = begun + within;
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
    drawn = retry_.cost(failure.timed_out);
    if (!allowed || number >= retry_.attempts() || SteadyClock::now() + pause >= deadline ||
        !retry_.draw(drawn)) {
      failure.error.unsure = unsure;
      if (failure.again)
        failure.error.message = fmt::format("{} (after {} tries)", failure.error.message, number);
      const std::lock_guard lock(mutex_);
      ++failed_[std::string(short_name(protocol::error_type(failure.error.code)))];
      co_return std::unexpected(std::move(failure.error));
    }
    ++retried_;
    log::debug("{} failed, and is tried again: {}", operation.name, failure.error.message);
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, pause);
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
}

awaitable<std::expected<void, Caller::Failure>> Caller::attempt(Operation operation, std::string_view body,
                                                                SteadyClock::time_point deadline,
                                                                const Read& read) {
  auto credentials = co_await credentials_.get();
  if (!credentials)
    co_return std::unexpected(
        Failure{.error = {ErrorCode::access_denied, std::move(credentials).error()}, .again = false});
  auto& client = operation.streams ? streams_ : items_;
  const auto host = client.server().authority();
  std::string target(operation.streams ? "DynamoDBStreams_20120810." : "DynamoDB_20120810.");
  target.append(operation.name);
  std::string head;
  head.reserve(640);
  head.append("POST / HTTP/1.1\r\nHost: ").append(host);
  head.append("\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: ").append(target);
  head.append("\r\nContent-Length: ").append(fmt::format_int(body.size()).c_str()).append("\r\n");
  signer_.append_headers(head, *credentials, host, target, body);
  head.append("\r\n");
  const auto reply = co_await client.send(head, body, deadline);
  if (!reply) {
    const auto& error = reply.error();
    co_return std::unexpected(Failure{.error = {ErrorCode::unavailable, error.message},
                                      .again = true,
                                      .unknown = error.stage >= net::ClientError::Stage::waiting,
                                      .timed_out = error.timed_out});
  }
  if (!is_intact(*reply))
    co_return std::unexpected(Failure{.error = {ErrorCode::unavailable, "the answer was damaged on its way"},
                                      .again = true,
                                      .unknown = true});
  if (reply->status() != 200) co_return std::unexpected(understand(*reply, *credentials));
  // TagResource and its like answer with nothing.
  const auto json = document_of_thread().parse(reply->body().empty() ? "{}" : reply->body());
  if (!json || !read(*json))
    co_return std::unexpected(Failure{
        .error = {ErrorCode::unavailable, "the answer is not DynamoDB's"}, .again = true, .unknown = true});
  co_return std::expected<void, Failure>{};
}

// What an answer other than 200 means.
Caller::Failure Caller::understand(const net::HttpReply& reply,
                                   const std::shared_ptr<const Credentials>& credentials) {
  ErrorBody body;
  const auto json = document_of_thread().parse(reply.body());
  const bool readable = json && read(*json, body);
  const auto name = short_name(body.type);
  const auto code = readable ? protocol::error_code(body.type) : std::nullopt;
  Failure failure{.error = {code.value_or(ErrorCode::unavailable), std::move(body.message)}};
  failure.error.item = std::move(body.item);
  failure.error.reasons = std::move(body.reasons);
  if (is_about_time(name, failure.error.message)) {
    failure.again = signer_.correct_by(reply.header("date"));
  } else if (is_about_expiry(name)) {
    credentials_.forget(credentials);
    failure.again = credentials->expires.has_value();
  } else if (failure.error.code == ErrorCode::throttled ||
             failure.error.code == ErrorCode::transaction_conflict ||
             name == "TransactionInProgressException") {
    failure.again = true;
  } else if (failure.error.code == ErrorCode::transaction_canceled) {
    failure.again = was_only_crowded(failure.error.reasons);
  } else if (reply.status() >= 500 || !code) {
    failure.again = reply.status() >= 500;
    failure.unknown = reply.status() >= 500;
    if (failure.error.message.empty() || !readable)
      failure.error.message = fmt::format("the endpoint answered {} {}", reply.status(), name);
    else if (!code)
      failure.error.message = fmt::format("{}: {}", name, failure.error.message);
    if (!code && reply.status() < 500) failure.error.code = ErrorCode::validation;
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
