#include "net/openapi.h"

#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace tabella::net {
namespace {

void write_parameter(JsonArrayWriter& parameters, std::string_view name, std::string_view in,
                     std::string_view help) {
  JsonObjectWriter parameter(parameters.element());
  parameter.string("name", name);
  parameter.string("in", in);
  parameter.boolean("required", in == "path");
  if (!help.empty()) parameter.string("description", help);
  JsonObjectWriter schema(parameter.key("schema"));
  schema.string("type", "string");
}

void write_parameters(JsonObjectWriter& operation, const Route& route) {
  JsonArrayWriter parameters(operation.key("parameters"));
  for (const auto segment : split(route.path, '/'))
    if (segment.starts_with('{'))
      write_parameter(parameters, segment.substr(1, segment.size() - 2), "path", "");
  for (const auto& [name, help] : route.query) write_parameter(parameters, name, "query", help);
}

void write_content(JsonObjectWriter& parent, std::string_view type, std::string_view example) {
  JsonObjectWriter content(parent.key("content"));
  JsonObjectWriter media(content.key(type));
  if (!example.empty()) media.string("example", example);
}

void write_response(JsonObjectWriter& responses, std::string_view status, std::string_view description,
                    std::string_view type) {
  JsonObjectWriter response(responses.key(status));
  response.string("description", description);
  write_content(response, type, {});
}

void write_operation(JsonObjectWriter& path, const Route& route) {
  JsonObjectWriter operation(path.key(lower(route.method)));
  operation.string("summary", route.summary);
  {
    JsonArrayWriter tags(operation.key("tags"));
    append_json_string(tags.element(), route.scope.substr(0, route.scope.find(':')));
  }
  write_parameters(operation, route);
  if (!route.body.empty()) {
    JsonObjectWriter body(operation.key("requestBody"));
    body.boolean("required", !route.body_is_optional);
    const bool json = route.body.starts_with('{') || route.body.starts_with('[');
    write_content(body, json ? "application/json" : "application/x-www-form-urlencoded", route.body);
  }
  {
    JsonObjectWriter responses(operation.key("responses"));
    write_response(responses, "2XX", route.summary, route.answer);
    write_response(responses, "4XX", "What is wrong with the request", "application/json");
    write_response(responses, "5XX", "What is wrong here", "application/json");
  }
  JsonArrayWriter security(operation.key("security"));
  if (route.scope == kAnybody) return;
  for (const auto* scheme : {"token", "user", "session"}) {
    JsonObjectWriter one(security.element());
    JsonArrayWriter scopes(one.key(scheme));
    append_json_string(scopes.element(), route.scope);
  }
  for (const auto& headers : route.own_credentials) {
    JsonObjectWriter one(security.element());
    for (const auto& header : headers) JsonArrayWriter{one.key(header)};
  }
}

std::set<std::string> own_headers(const std::vector<const Route*>& routes) {
  std::set<std::string> headers;
  for (const auto* route : routes)
    for (const auto& credential : route->own_credentials)
      headers.insert(credential.begin(), credential.end());
  return headers;
}

void write_scheme(JsonObjectWriter& schemes, std::string_view name,
                  std::initializer_list<std::pair<std::string_view, std::string_view>> members) {
  JsonObjectWriter scheme(schemes.key(name));
  for (const auto& [key, value] : members) scheme.string(key, value);
}

}  // namespace

std::string openapi(const Router& router, std::string_view web_path, std::string_view version) {
  std::map<std::string, std::vector<const Route*>> by_path;
  for (const auto* route : router.routes()) by_path[route->path].push_back(route);
  std::string json;
  {
    JsonObjectWriter document(json);
    document.string("openapi", "3.1.0");
    {
      JsonObjectWriter info(document.key("info"));
      info.string("title", "Tabella");
      info.string("version", version);
    }
    {
      JsonArrayWriter servers(document.key("servers"));
      JsonObjectWriter server(servers.element());
      server.string("url", web_path.empty() ? "/" : web_path);
    }
    {
      JsonObjectWriter paths(document.key("paths"));
      for (const auto& [path, routes] : by_path) {
        JsonObjectWriter one(paths.key(path));
        for (const auto* route : routes) write_operation(one, *route);
      }
    }
    JsonObjectWriter components(document.key("components"));
    JsonObjectWriter schemes(components.key("securitySchemes"));
    write_scheme(schemes, "token", {{"type", "http"}, {"scheme", "bearer"}});
    write_scheme(schemes, "user", {{"type", "http"}, {"scheme", "basic"}});
    write_scheme(schemes, "session", {{"type", "apiKey"}, {"in", "cookie"}, {"name", "tabella_session"}});
    for (const auto& header : own_headers(router.routes()))
      write_scheme(schemes, header, {{"type", "apiKey"}, {"in", "header"}, {"name", header}});
  }
  return json;
}

}  // namespace tabella::net
