#include "net/call.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "net/budget.h"

namespace tabella::net {

bool Caller::may(std::string_view scope) const {
  return std::ranges::any_of(scopes, [scope](std::string_view mine) {
    if (mine == "*" || mine == scope) return true;
    if (!mine.ends_with(":*")) return false;
    mine.remove_suffix(1);  // the colon stays
    return scope.starts_with(mine);
  });
}

const std::string& Call::path(std::string_view name) const {
  for (const auto& [captured, value] : captured_)
    if (captured == name) return value;
  throw std::logic_error(fmt::format("the route has no {{{}}}", name));
}

std::string Call::text(std::string_view name, std::string_view otherwise) const {
  return target.has(name) ? target.get(name) : std::string(otherwise);
}

int64_t Call::number(std::string_view name, int64_t otherwise, int64_t least, int64_t most) {
  if (!target.has(name)) return otherwise;
  const auto given = target.get(name);
  int64_t value = 0;
  const auto* end = given.data() + given.size();
  const auto [read, error] = std::from_chars(given.data(), end, value);
  if (error == std::errc{} && read == end && value >= least && value <= most) return value;
  refuse(400, fmt::format("{}: expected a whole number from {} to {}", name, least, most));
  return otherwise;
}

bool Call::flag(std::string_view name) {
  const auto given = target.get(name);
  if (!target.has(name) || given == "false" || given == "0") return false;
  if (given.empty() || given == "true" || given == "1") return true;
  refuse(400, fmt::format("{}: expected true or false", name));
  return false;
}

std::chrono::milliseconds Call::duration(std::string_view name, std::chrono::milliseconds otherwise,
                                         std::chrono::milliseconds most) {
  if (!target.has(name)) return otherwise;
  if (const auto given = parse_duration(target.get(name))) return std::min(*given, most);
  refuse(400, fmt::format("{} is a time, as in 5s", name));
  return otherwise;
}

std::optional<JsonBody> Call::json(std::string_view expected) {
  document_.emplace();
  const auto value = document_->parse(request.body);
  if (value && value->kind() == JsonValue::Kind::object) return JsonBody(*this, *value);
  refuse(400, fmt::format("expected a JSON object: {}", expected));
  return std::nullopt;
}

namespace {

std::string_view aws_error_name(int status) {
  switch (status) {
    case 401: return "UnrecognizedClientException";
    case 403: return "AccessDeniedException";
    case 404: return "NotFoundException";
    case 413: return "RequestEntityTooLargeException";
    case 429: return "TooManyRequestsException";
    default: return status < 500 ? "BadRequestException" : "InternalFailure";
  }
}

}  // namespace

void Call::refuse(const Refusal& refusal) {
  for (const auto& [name, value] : refusal.headers) response.add_header(name, value);
  refuse(refusal.status, refusal.message);
}

void Call::refuse(int status, std::string_view message) {
  if (answered_) return;
  answered_ = true;
  answer_error(response, status, message);
  if (request.header("x-amz-date").empty()) return;
  // AWS's clients look for the name of an error in a header, and for its message under that name.
  response.add_header("x-amzn-errortype", aws_error_name(status));
  response.body.pop_back();
  response.body += ",\"message\":";
  append_json_string(response.body, to_valid_utf8(message));
  response.body += '}';
}

std::string& Call::answer_json(int status) {
  answered_ = true;
  response.status = status;
  response.content_type = "application/json";
  return response.body;
}

bool Call::count_memory(size_t bytes) {
  if (!request.unpacked || request.unpacked->resize(bytes)) return true;
  response.add_header("Retry-After", "1");
  refuse(503, "too many large requests and answers are under way; try again");
  return false;
}

std::optional<JsonValue> JsonBody::find(std::string_view name) {
  known_.emplace(name);
  return object_.find(name);
}

void JsonBody::wrong(std::string_view name, std::string_view expected) {
  call_.refuse(400, fmt::format("{}: expected {}", name, expected));
}

std::string JsonBody::text(std::string_view name) {
  const auto value = find(name);
  if (value && value->kind() == JsonValue::Kind::string) return std::string(value->string());
  call_.refuse(400, value ? fmt::format("{}: expected a text", name) : fmt::format("{} is missing", name));
  return {};
}

std::string JsonBody::text(std::string_view name, std::string_view otherwise) {
  const auto value = find(name);
  if (!value) return std::string(otherwise);
  if (value->kind() == JsonValue::Kind::string) return std::string(value->string());
  wrong(name, "a text");
  return std::string(otherwise);
}

int64_t JsonBody::number(std::string_view name, int64_t otherwise, int64_t least, int64_t most) {
  const auto value = find(name);
  if (!value) return otherwise;
  const bool whole = value->kind() == JsonValue::Kind::integer;
  if (whole && value->integer() >= least && value->integer() <= most) return value->integer();
  wrong(name, fmt::format("a whole number from {} to {}", least, most));
  return otherwise;
}

bool JsonBody::flag(std::string_view name, bool otherwise) {
  const auto value = find(name);
  if (!value) return otherwise;
  if (value->kind() == JsonValue::Kind::boolean) return value->boolean();
  wrong(name, "true or false");
  return otherwise;
}

std::chrono::milliseconds JsonBody::duration(std::string_view name, std::chrono::milliseconds most) {
  const auto given = parse_duration(text(name));
  if (given && *given <= most) return *given;
  wrong(name, fmt::format("a time, as in 5s, of at most {} seconds", most.count() / 1000));
  return most;
}

std::vector<std::string> JsonBody::texts(std::string_view name) {
  std::vector<std::string> all;
  const auto value = find(name);
  if (!value) return all;
  bool fits = value->kind() == JsonValue::Kind::array;
  if (fits)
    for (JsonElements elements(*value); elements.next();) {
      fits = fits && elements.value().kind() == JsonValue::Kind::string;
      if (fits) all.emplace_back(elements.value().string());
    }
  if (!fits) wrong(name, "a list of texts");
  return all;
}

std::optional<JsonValue> JsonBody::any(std::string_view name) { return find(name); }

void JsonBody::no_others() {
  for (JsonElements members(object_); members.next();)
    if (!known_.contains(members.key()))
      return call_.refuse(400, fmt::format("{} is not known here", members.key()));
}

void answer_error(HttpResponse& response, int status, std::string_view message) {
  response.status = status;
  response.content_type = "application/json";
  response.body.clear();
  JsonObjectWriter object(response.body);
  object.string("error", to_valid_utf8(message));
}

}  // namespace tabella::net
