#pragma once

#include <string_view>

#include "engine/streams.h"
#include "store/error.h"

namespace tabella::engine {

// The stream that an ARN names, or what AWS says if there is none.
store::Result<StreamPtr> find_stream(const Streams& streams, std::string_view arn);

}  // namespace tabella::engine
