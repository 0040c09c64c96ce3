// TagResource, UntagResource and ListTagsOfResource.
#include "wire/operations.h"
#include "wire/table_json.h"

namespace tabella::wire {
namespace {

std::string read_arn(const Reader& reader) {
  const auto arn = reader.string("ResourceArn");
  if (!arn) reader.problems().first("Invalid TableArn");
  return arn.value_or("");
}

Wire<store::TagResourceRequest> read_tag(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::TagResourceRequest request{.arn = read_arn(reader), .tags = {}};
  reader.require("Tags", reader.list("Tags"));
  request.tags = read_tags(reader);
  if (request.tags.empty()) problems.late("Atleast one Tag needs to be provided as Input.");
  TABELLA_TRY(problems.result());
  return request;
}

Wire<store::UntagResourceRequest> read_untag(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::UntagResourceRequest request{.arn = read_arn(reader), .keys = {}};
  const auto keys = reader.strings("TagKeys");
  if (reader.require("TagKeys", keys)) request.keys = *keys;
  if (request.keys.empty()) problems.late("Atleast one Tag Key needs to be provided as Input.");
  TABELLA_TRY(problems.result());
  return request;
}

}  // namespace

// The answers of these two are empty, not {}.
TABELLA_OPERATION(tag_resource) {
  static_cast<void>(out);
  auto request = read_tag(body);
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await context.store.tag_resource(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  co_return Wire<>{};
}

TABELLA_OPERATION(untag_resource) {
  static_cast<void>(out);
  auto request = read_untag(body);
  if (!request) co_return std::unexpected(std::move(request).error());
  auto result = co_await context.store.untag_resource(std::move(*request));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  co_return Wire<>{};
}

TABELLA_OPERATION(list_tags_of_resource) {
  Problems problems;
  auto arn = read_arn(Reader(body, problems));
  if (auto checked = problems.result(); !checked) co_return std::unexpected(std::move(checked).error());
  auto result = co_await context.store.list_tags_of_resource(std::move(arn));
  if (!result) co_return std::unexpected(to_wire(std::move(result).error()));
  item::JsonObjectWriter json(out);
  item::JsonArrayWriter tags(json.key("Tags"));
  for (const auto& tag : *result) {
    item::JsonObjectWriter inner(tags.element());
    inner.string("Key", tag.key);
    inner.string("Value", tag.value);
  }
  co_return Wire<>{};
}

}  // namespace tabella::wire
