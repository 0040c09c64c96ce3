#include "engine/read_item.h"

#include "expression/legacy.h"

namespace tabella::engine {

using store::Result;

Result<std::optional<expression::Projection>> prepare_projection(
    const std::optional<std::string>& projection,
    const std::optional<std::vector<std::string>>& attributes_to_get,
    const store::ExpressionAttributes& attributes, expression::Caches& caches) {
  TABELLA_TRY(check_parameters({{"ProjectionExpression", projection.has_value()}},
                               {{"AttributesToGet", attributes_to_get.has_value()}}, attributes));
  if (attributes_to_get) {
    TABELLA_ASSIGN(auto paths, expression::from_attributes_to_get(*attributes_to_get));
    return std::optional(std::move(paths));
  }
  TABELLA_TRY(check_attributes(attributes));
  if (!projection) return std::nullopt;
  expression::Bindings bindings(attributes.names_or_none(), attributes.values_or_none());
  TABELLA_ASSIGN(auto paths, prepare(caches.projections, projection, bindings, "ProjectionExpression"));
  TABELLA_TRY(bindings.check_all_used());
  return paths;
}

}  // namespace tabella::engine
