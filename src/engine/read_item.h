// What GetItem and BatchGetItem share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/prepare.h"
#include "expression/evaluate.h"

namespace tabella::engine {

// ProjectionExpression or AttributesToGet, with every check that needs no table.
store::Result<std::optional<expression::Projection>> prepare_projection(
    const std::optional<std::string>& projection,
    const std::optional<std::vector<std::string>>& attributes_to_get,
    const store::ExpressionAttributes& attributes, expression::Caches& caches);

}  // namespace tabella::engine
