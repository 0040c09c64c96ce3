// One request on its way through a handler: what was asked, by whom, and the answer.
//
// Whatever is wrong with a request is answered where it is found: a reader that meets a mistake fills in the
// response, for the first mistake only, and the handler leaves once `answered()`. On one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "net/http.h"
#include "net/target.h"

namespace tabella::net {

// Who makes a request, and what they may do.
struct Caller {
  std::string name;                 // "user ann", "token ci", "key AKID…"; empty: anybody
  std::vector<std::string> scopes;  // "mail:read", "mail:*", "*"

  bool may(std::string_view scope) const;
};

// Why somebody does not come in.
struct Refusal {
  int status = 401;  // 401, 403 or 503
  std::string message;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

class JsonBody;

class Call {
 public:
  Call(const HttpRequest& asked, HttpResponse& answer, Target where)
      : request(asked), response(answer), target(std::move(where)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const HttpRequest& request;
  HttpResponse& response;
  const Target target;
  Caller caller;
  std::optional<Refusal> not_admitted;  // on routes with credentials of their own

  // The part of the path that stands for {name}.
  const std::string& path(std::string_view name) const;

  // Parameters of the query. What is missing is `otherwise`; what is wrong is answered with 400.
  std::string text(std::string_view name, std::string_view otherwise = "") const;
  int64_t number(std::string_view name, int64_t otherwise, int64_t least, int64_t most);
  bool flag(std::string_view name);  // ?name, ?name=true
  std::chrono::milliseconds duration(std::string_view name, std::chrono::milliseconds otherwise,
                                     std::chrono::milliseconds most);

  // The JSON object that was sent; if it is none, that is answered with 400 and what was expected.
  std::optional<JsonBody> json(std::string_view expected);

  bool answered() const { return answered_; }
  void refuse(int status, std::string_view message);
  void refuse(const Refusal& refusal);
  // The body of an answer in JSON, to be appended to.
  std::string& answer_json(int status = 200);
  // Counts what the answer will hold in memory; if there is no room for it beside those of others, that is
  // answered with 503.
  bool count_memory(size_t bytes);

 private:
  friend class Router;
  std::vector<std::pair<std::string_view, std::string>> captured_;  // by the names of the route
  std::optional<JsonDocument> document_;
  bool answered_ = false;
};

// The members of an object, each read by its type. Borrows from the call.
class JsonBody {
 public:
  JsonBody(Call& call, JsonValue object) : call_(call), object_(object) {}

  // What is missing is `otherwise`, or answered with 400 where there is none.
  std::string text(std::string_view name);
  std::string text(std::string_view name, std::string_view otherwise);
  int64_t number(std::string_view name, int64_t otherwise, int64_t least, int64_t most);
  bool flag(std::string_view name, bool otherwise);
  std::chrono::milliseconds duration(std::string_view name, std::chrono::milliseconds most);
  std::vector<std::string> texts(std::string_view name);  // a list; empty where there is none
  std::optional<JsonValue> any(std::string_view name);
  // Answers 400 if there is a member that nobody has read: it is probably misspelt.
  void no_others();

 private:
  std::optional<JsonValue> find(std::string_view name);
  void wrong(std::string_view name, std::string_view expected);

  Call& call_;
  const JsonValue object_;
  std::set<std::string, std::less<>> known_;
};

// The one shape of all errors: {"error": "…"}.
void answer_error(HttpResponse& response, int status, std::string_view message);

}  // namespace tabella::net
