#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/table_checks.h"

namespace tabella::engine {

using store::ErrorCode;
using store::refuse;
using store::Result;
using store::Tag;

namespace {

// The table that an ARN names: arn:aws:dynamodb:<region>:<account>:table/<name>.
Result<std::string> table_of(std::string_view arn) {
  const auto bad = [&] {
    return refuse(fmt::format("Invalid TableArn: Invalid ResourceArn provided as input {}", arn));
  };
  if (!arn.starts_with("arn:")) return refuse(fmt::format("ARNs must start with 'arn:': {}", arn));
  constexpr std::string_view kTable = ":table/";
  if (!arn.starts_with("arn:aws:dynamodb:")) return bad();
  const auto at = arn.find(kTable);
  if (at == std::string_view::npos) return bad();
  const auto name = arn.substr(at + kTable.size());
  if (name.size() < 3 || name.find('/') != std::string_view::npos) return bad();
  return std::string(name);
}

std::string_view account_of(std::string_view arn) {
  const auto parts = split(arn, ':');
  return parts.size() > 4 ? parts[4] : std::string_view();
}

std::string no_such_resource(std::string_view arn) {
  return fmt::format("Requested resource not found: ResourcArn: {} not found", arn);  // AWS's own spelling
}

}  // namespace

store::Async<void> Engine::change_tags(std::string arn, std::string not_found,
                                       std::function<Result<>(std::vector<Tag>&)> change) {
  TABELLA_CO_ASSIGN(const auto name, table_of(arn));
  Result<> result;
  const auto executed = co_await writer_.execute([&](WriteContext& context) {
    const auto old = context.table(name);
    if (!old) {
      result = store::fail(ErrorCode::resource_not_found, std::move(not_found));
      return;
    }
    auto table = std::make_shared<TableSchema>(*old);
    result = change(table->tags);
    if (result) context.put_table(std::move(table));
  });
  if (!executed) co_return std::unexpected(executed.error());
  co_return result;
}

store::Async<void> Engine::tag_resource(store::TagResourceRequest request) {
  TABELLA_CO_TRY(check_tags(request.tags));
  auto not_found = no_such_resource(request.arn);
  co_return co_await change_tags(request.arn, std::move(not_found), [&](std::vector<Tag>& tags) -> Result<> {
    for (const auto& tag : request.tags) {
      const auto at = std::ranges::find_if(tags, [&](const Tag& t) { return t.key == tag.key; });
      if (at == tags.end())
        tags.push_back(tag);
      else
        at->value = tag.value;
    }
    return check_tag_count(tags.size());
  });
}

store::Async<void> Engine::untag_resource(store::UntagResourceRequest request) {
  co_return co_await change_tags(
      request.arn, "Requested resource not found", [&](std::vector<Tag>& tags) -> Result<> {
        std::erase_if(
            tags, [&](const Tag& t) { return std::ranges::find(request.keys, t.key) != request.keys.end(); });
        return {};
      });
}

store::Async<std::vector<Tag>> Engine::list_tags_of_resource(std::string arn) {
  TABELLA_CO_ASSIGN(const auto name, table_of(arn));
  const auto table = catalogue_.find(name);
  if (table) co_return table->tags;
  if (account_of(arn) == kAccount)
    co_return store::fail(ErrorCode::resource_not_found, no_such_resource(arn));
  co_return store::fail(ErrorCode::access_denied,
                        fmt::format("User: arn:aws:iam::{}:root is not authorized to perform: "
                                    "dynamodb:ListTagsOfResource on resource: {}",
                                    kAccount, arn));
}

}  // namespace tabella::engine
