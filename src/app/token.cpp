#include "app/token.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "access/table.h"
#include "access/tokens.h"
#include "app/http_port.h"
#include "app/open_store.h"
#include "store/tables.h"

namespace tabella::app {
namespace {

using access::Token;
using access::Tokens;
using store::Async;

std::string shown_time(std::optional<TimePoint> time) {
  if (!time) return "never";
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::chrono::system_clock::to_time_t(*time)));
}

using TokenLine = std::array<std::string, 6>;

TokenLine line_of(const Token& token, TimePoint now) {
  const bool over = token.expires && *token.expires <= now;
  return {token.id,
          token.name,
          fmt::format("{}", fmt::join(token.scopes, ",")),
          shown_time(token.created),
          shown_time(token.expires) + (over ? " (over)" : ""),
          shown_time(token.last_used)};
}

void print(const std::vector<Token>& tokens, TimePoint now) {
  std::vector<TokenLine> lines = {{"ID", "NAME", "SCOPES", "CREATED", "EXPIRES", "LAST USED"}};
  for (const auto& token : tokens) lines.push_back(line_of(token, now));
  std::array<size_t, std::tuple_size_v<TokenLine>> widths{};
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  for (const auto& line : lines) {
    for (size_t i = 0; i + 1 < line.size(); ++i) fmt::print("{:<{}}  ", line[i], widths[i]);
    fmt::print("{}\n", line.back());
  }
}

Async<int> create(Tokens& tokens, const TokenOptions& options) {
  const auto before = co_await tokens.any();
  if (!before) co_return std::unexpected(before.error());
  const auto made = co_await tokens.create(options.name, options.scopes, options.expires);
  if (!made) co_return std::unexpected(made.error());
  fmt::print("{}\n", made->secret);
  std::fflush(stdout);
  fmt::print(stderr, "This is the secret of token {} ({}){}. It is not shown again.\n", made->token.id,
             fmt::join(made->token.scopes, ", "),
             made->token.expires ? ", good until " + shown_time(made->token.expires) : "");
  if (!*before)
    fmt::print(stderr,
               "It is the first: within two seconds nobody comes in over HTTP any more without a token, a "
               "login (--auth-file) or a signature (--access-key).\n");
  co_return 0;
}

Async<int> list(Tokens& tokens, const Clock& clock) {
  const auto all = co_await tokens.list();
  if (!all) co_return std::unexpected(all.error());
  if (all->empty())
    fmt::print(stderr, "There are no tokens.\n");
  else
    print(*all, clock.now());
  co_return 0;
}

Async<int> revoke(Tokens& tokens, const TokenOptions& options) {
  const auto revoked = co_await tokens.revoke(options.id);
  if (!revoked) co_return std::unexpected(revoked.error());
  if (!*revoked) {
    fmt::print(stderr, "There is no token {}; `tabella token list` shows those that there are.\n",
               options.id);
    co_return 1;
  }
  fmt::print(stderr, "Token {} is refused within two seconds.\n", options.id);
  const auto left = co_await tokens.any();
  if (left && !*left)
    fmt::print(stderr, "It was the last: without --auth-file everybody may come in over HTTP again.\n");
  co_return 0;
}

Async<int> act(store::Store& store, const Clock& clock, const TokenOptions& options) {
  const auto table = access_table(options.store.table_prefix);
  TABELLA_CO_TRY(co_await store::prepare_tables(store, {access::plan(table)}, store::Missing::create));
  Tokens tokens(store, clock, table);
  switch (options.action) {
    case TokenOptions::Action::create: co_return co_await create(tokens, options);
    case TokenOptions::Action::list: co_return co_await list(tokens, clock);
    case TokenOptions::Action::revoke: co_return co_await revoke(tokens, options);
  }
  std::unreachable();
}

}  // namespace

int token(const TokenOptions& options) {
  return run_on_store(options.store, [&options](store::Store& store, const Clock& clock) {
    return act(store, clock, options);
  });
}

}  // namespace tabella::app
