// The bell for pages, <tabella-inbox>: made of web/inbox/ when this is built (cmake/web.cmake).
#pragma once

#include <string_view>

namespace tabella::inbox {

// JavaScript, compressed by gzip.
std::string_view packed_script();

}  // namespace tabella::inbox
