// TagResource, UntagResource and ListTagsOfResource.
#include "protocol/shapes.h"
#include "wire/answer.h"
#include "wire/table_json.h"

namespace tabella::wire {
namespace {

std::string read_arn(const Reader& reader) {
  const auto arn = reader.string("ResourceArn");
  if (!arn) reader.problems().first("Invalid TableArn");
  return arn.value_or("");
}

Result<store::TagResourceRequest> read_tag_resource(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::TagResourceRequest request{.arn = read_arn(reader), .tags = {}};
  reader.require("Tags", reader.list("Tags"));
  request.tags = read_tags(reader);
  if (request.tags.empty()) problems.late("Atleast one Tag needs to be provided as Input.");
  TABELLA_TRY(problems.result());
  return request;
}

Result<store::UntagResourceRequest> read_untag_resource(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  store::UntagResourceRequest request{.arn = read_arn(reader), .keys = {}};
  const auto keys = reader.strings("TagKeys");
  if (reader.require("TagKeys", keys)) request.keys = *keys;
  if (request.keys.empty()) problems.late("Atleast one Tag Key needs to be provided as Input.");
  TABELLA_TRY(problems.result());
  return request;
}

Result<std::string> read_list_tags_of_resource(JsonValue body) {
  Problems problems;
  const Reader reader(body, problems);
  auto arn = read_arn(reader);
  // All tags are in one answer: no token can be from us.
  if (reader.string("NextToken")) problems.late("Invalid NextToken");
  TABELLA_TRY(problems.result());
  return arn;
}

void append_tags(std::string& out, const std::vector<store::Tag>& list) {
  JsonObjectWriter json(out);
  protocol::append_tags(json.key("Tags"), list);
}

}  // namespace

// The answers of these two are empty, not {}.
TABELLA_OPERATION(tag_resource) {
  static_cast<void>(out);
  return answer(read_tag_resource(body), context, &store::Store::tag_resource);
}

TABELLA_OPERATION(untag_resource) {
  static_cast<void>(out);
  return answer(read_untag_resource(body), context, &store::Store::untag_resource);
}

TABELLA_OPERATION(list_tags_of_resource) {
  return answer(read_list_tags_of_resource(body), context, &store::Store::list_tags_of_resource, out,
                append_tags);
}

}  // namespace tabella::wire
