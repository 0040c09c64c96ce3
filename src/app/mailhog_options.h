// MailHog's flags for what Tabella has otherwise, or not: for those who bring their command line along. Its
// other flags are further names of ours.
#pragma once

#include "app/server_options.h"

namespace tabella::app {

OptionGroup mailhog_table(ServeOptions& options);

}  // namespace tabella::app
