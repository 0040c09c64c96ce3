#include "wire/door.h"

#include <fmt/format.h>
#include <boost/asio/this_coro.hpp>

#include "base/checksum.h"
#include "base/ids.h"
#include "base/log.h"
#include "net/budget.h"
#include "wire/encoding.h"
#include "wire/operations.h"

namespace tabella::wire {

using boost::asio::awaitable;
using net::HttpRequest;
using net::HttpResponse;

namespace {

constexpr std::string_view kAmzJson = "application/x-amz-json-1.0";
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr size_t kCompressFrom = 4096;
constexpr size_t kHeavyBody = 64u << 10;

std::string_view media_type(const HttpRequest& request) {
  auto type = request.header("content-type");
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return type;
}

std::string_view path_of(const HttpRequest& request) {
  return request.target.substr(0, request.target.find('?'));
}

void answer_preflight(const HttpRequest& request, HttpResponse& response) {
  const auto echo = [&](std::string_view asked, std::string_view answer) {
    if (request.has_header(asked)) response.add_header(answer, request.header(asked));
  };
  echo("access-control-request-headers", "Access-Control-Allow-Headers");
  echo("access-control-request-method", "Access-Control-Allow-Methods");
  response.add_header("Access-Control-Max-Age", "172800");
}

void add_checksum(HttpResponse& response) {
  response.add_header("x-amz-crc32", fmt::format_int(crc32(response.body)).c_str());
}

void compress_body(const HttpRequest& request, HttpResponse& response) {
  if (response.body.size() <= kCompressFrom) return;
  const auto encoding = choose_encoding(request.header("accept-encoding"));
  if (!encoding) return;
  response.body = compress(response.body, *encoding);
  response.add_header("Content-Encoding", *encoding == Compression::gzip ? "gzip" : "deflate");
}

// The body as its sender wrote it. AWS answers 500 to what it cannot unpack.
Result<std::string> unpack(const HttpRequest& request, std::string_view encoding) {
  const bool gzip = net::same_header(encoding, "gzip");
  if (!gzip && !net::same_header(encoding, "deflate")) return std::unexpected(internal_error());
  auto unpacked = decompress(request.body, gzip ? Compression::gzip : Compression::deflate, kMaxBody);
  if (!unpacked.error) return std::move(unpacked.bytes);
  auto error = internal_error();
  if (unpacked.error == DecompressError::too_large) error.status = 413;
  return std::unexpected(std::move(error));
}

// Much is to be read, or much may be found. What is found is then written on the same thread: it does not
// wait in memory for its turn.
bool takes_long(const HttpRequest& request, const NamedOperation* operation) {
  constexpr size_t kSeveralKeys = 256;
  if (request.body.size() >= kHeavyBody || request.has_header("content-encoding")) return true;
  return operation && operation->reads_many && request.body.size() >= kSeveralKeys;
}

void log_request(const HttpRequest& request, const HttpResponse& response, std::string_view request_id,
                 std::chrono::nanoseconds took) {
  log::write(
      log::Level::debug, "request",
      {{"request_id", std::string(request_id)},
       {"target", std::string(request.header("x-amz-target"))},
       {"status", std::to_string(response.status)},
       {"milliseconds", fmt::format("{:.3f}", std::chrono::duration<double, std::milli>(took).count())}});
}

}  // namespace

awaitable<Result<>> Door::execute(const HttpRequest& request, const NamedOperation* operation,
                                  std::string_view body, std::string& out) {
  thread_local JsonDocument document;
  const auto json = body.empty() ? std::nullopt : document.parse(body);
  if (!json && !body.empty()) co_return std::unexpected(serialization_error(std::nullopt));
  if (!operation) co_return std::unexpected(service_error("UnknownOperationException", std::nullopt));
  if (!verifier_.required())
    if (auto parsed = protocol::parse_authorization(request); !parsed)
      co_return std::unexpected(to_wire(std::move(parsed).error()));
  if (!json || json->kind() != JsonValue::Kind::object)
    co_return std::unexpected(serialization_error(std::nullopt));
  co_return co_await operation->run(OperationContext{store_, request.header("host"), options_.long_work,
                                                     request.unpacked, &options_.unlisted_tables},
                                    *json, out);
}

// Signature over the bytes as sent, then unpacking, then the operation.
awaitable<Result<>> Door::call(const HttpRequest& request, const NamedOperation* operation,
                               std::string_view request_id, std::string& out) {
  std::string unpacked;
  std::string_view body = request.body;
  if (verifier_.required())
    if (auto verified = verifier_.verify(request); !verified)
      co_return std::unexpected(to_wire(std::move(verified).error()));
  if (const auto encoding = request.header("content-encoding"); !encoding.empty()) {
    TABELLA_CO_ASSIGN(auto bytes, unpack(request, encoding));
    unpacked = std::move(bytes);
    body = unpacked;
    if (request.unpacked && !request.unpacked->resize(unpacked.capacity()))
      co_return std::unexpected(
          to_wire({store::ErrorCode::unavailable, "too many large requests are under way"}));
  }
  try {
    co_return co_await execute(request, operation, body, out);
  } catch (const std::exception& error) {
    log::write(log::Level::error, "a request failed",
               {{"request_id", std::string(request_id)},
                {"target", std::string(request.header("x-amz-target"))},
                {"error", error.what()}});
    co_return std::unexpected(internal_error());
  }
}

void Door::add_cors(const HttpRequest& request, HttpResponse& response) const {
  if (!request.has_header("origin") || options_.cors_origin.empty()) return;
  response.add_header("Access-Control-Allow-Origin", options_.cors_origin);
  if (options_.cors_origin != "*") response.add_header("Vary", "Origin");
  response.add_header("Access-Control-Expose-Headers", "x-amzn-RequestId,x-amzn-ErrorType,x-amz-crc32,Date");
}

awaitable<void> Door::handle(const HttpRequest& request, HttpResponse& response) {
  const auto request_id = make_request_id();
  response.add_header("x-amzn-RequestId", request_id);
  if (!options_.hosts.knows(request.header("host"))) {
    response.status = 403;
    response.content_type = kPlain;
    response.body = "this name is not known here; --allow-host makes it so\n";
    co_return;
  }
  if (!net::may_call(request, options_.cors_origin)) {
    response.status = 403;
    response.content_type = kPlain;
    response.body = "pages of this origin may not call; --cors-origin lets them\n";
    co_return;
  }
  add_cors(request, response);
  if (request.method == "OPTIONS" && request.has_header("origin")) {
    answer_preflight(request, response);
    co_return;
  }
  if (request.method == "GET" && path_of(request) == "/") {
    const auto problem = options_.problem ? options_.problem() : std::string();
    response.status = problem.empty() ? 200 : 503;
    response.body = problem.empty() ? fmt::format("healthy: {} ", request.header("host"))
                                    : fmt::format("unhealthy: {}\n", problem);
    add_checksum(response);
    co_return;
  }
  const auto type = media_type(request);
  const bool known_type = request.body.empty() || type == kAmzJson || type == kJson;
  if (request.method != "POST" || path_of(request) != "/" || !known_type) {
    response.status = 404;
    response.body = "<UnknownOperationException/>\n";
    add_checksum(response);
    co_return;
  }
  response.content_type = type == kAmzJson ? kAmzJson : kJson;
  const auto* operation = find_operation(request.header("x-amz-target"));
  auto served = serve(request, operation, request_id, response);
  if (takes_long(request, operation))
    co_await options_.long_work.await(std::move(served));
  else
    co_await std::move(served);
}

awaitable<void> Door::serve(const HttpRequest& request, const NamedOperation* operation,
                            std::string_view request_id, HttpResponse& response) {
  const auto begun = std::chrono::steady_clock::now();
  const auto result = co_await call(request, operation, request_id, response.body);
  if (!result) {
    response.status = result.error().status;
    response.body = error_body(result.error());
  }
  const auto took = std::chrono::steady_clock::now() - begun;
  metrics_.add(operation, result, took);
  if (log::enabled(log::Level::debug)) log_request(request, response, request_id, took);
  const auto finish = [&] {
    compress_body(request, response);
    add_checksum(response);
    return true;
  };
  if (response.body.size() < kHeavyBody)
    finish();
  else
    co_await options_.long_work.run(finish);
}

}  // namespace tabella::wire
