#pragma once

#include <string>
#include <string_view>

namespace tabella {

// As the content of an element or of an attribute, in XML and HTML; what can be shown in neither is left out.
std::string xml_text(std::string_view text);

}  // namespace tabella
