#include "app/list_systems.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/json.h"
#include "net/router.h"

namespace tabella::app {
namespace {

void append_text(std::string& out, const house::System& system, const std::vector<store::TablePlan>& tables,
                 const net::Router& router) {
  out += fmt::format("{}: {}\n", system.name(), system.summary());
  for (const auto& table : tables) out += fmt::format("  table  {}\n", table.definition.name);
  for (const auto* route : router.routes())
    out += fmt::format("  {:6} {}  [{}] {}\n", route->method, route->path, route->scope, route->summary);
}

void append_system(std::string& out, const house::System& system, const std::vector<store::TablePlan>& tables,
                   const net::Router& router) {
  JsonObjectWriter object(out);
  object.string("name", system.name());
  object.string("summary", system.summary());
  {
    JsonArrayWriter names(object.key("tables"));
    for (const auto& table : tables) append_json_string(names.element(), table.definition.name);
  }
  JsonArrayWriter routes(object.key("routes"));
  for (const auto* route : router.routes()) {
    JsonObjectWriter one(routes.element());
    one.string("method", route->method);
    one.string("path", route->path);
    one.string("scope", route->scope);
    one.string("summary", route->summary);
  }
}

}  // namespace

int list_systems(const SystemsOptions& options, const house::Systems& systems) {
  std::string out;
  if (options.json) {
    JsonArrayWriter all(out);
    for (const auto& system : systems) {
      net::Router router({});
      system->add_routes(router);
      append_system(all.element(), *system, system->tables(options.table_prefix), router);
    }
  } else {
    for (const auto& system : systems) {
      net::Router router({});
      system->add_routes(router);
      append_text(out, *system, system->tables(options.table_prefix), router);
    }
  }
  fmt::print("{}{}", out, options.json ? "\n" : "");
  return 0;
}

}  // namespace tabella::app
