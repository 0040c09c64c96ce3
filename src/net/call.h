// One request on its way through a handler: what was asked, by whom, and the answer.
//
// Whatever is wrong with a request is answered where it is found: a reader that meets a mistake fills in the
// response, the first one only, and the handler leaves once `answered()`.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

// The JSON object that a request has for a body, member by member.
class JsonBody;

class Call {
 public:
  Call(const HttpRequest& asked, HttpResponse& answer, Target where)
      : request(asked), response(answer), target(std::move(where)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const HttpRequest& request;
  HttpResponse& response;
  Target target;
  Caller caller;
  std::string base;  // what paths begin with here; empty: nothing

  // The part of the path that stands for {name}.
  const std::string& path(std::string_view name) const;

  // Parameters of the query. What is missing is `otherwise`; what is wrong is answered with 400.
  std::string text(std::string_view name, std::string_view otherwise = "") const;
  int64_t number(std::string_view name, int64_t otherwise, int64_t least, int64_t most);
  bool flag(std::string_view name, bool otherwise = false);
  std::chrono::milliseconds duration(std::string_view name, std::chrono::milliseconds otherwise,
                                     std::chrono::milliseconds most);

  // The body as JSON; answers 400 and says what was expected if it is no such object.
  std::optional<JsonValue> json(std::string_view expected);

  bool answered() const { return answered_; }
  // {"error": "…"}, in one shape for all.
  void refuse(int status, std::string_view message);
  // The body of an answer in JSON, to be appended to.
  std::string& answer_json(int status = 200);

 private:
  friend class Router;
  std::vector<std::pair<std::string, std::string>> captured_;  // by name
  JsonDocument document_;
  bool answered_ = false;
};

}  // namespace tabella::net
