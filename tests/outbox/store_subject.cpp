// The contract on the store's own tables.
#include "outbox/subject.h"

namespace tabella::outbox {

std::unique_ptr<BackendSubject> make_store_subject() { return nullptr; }

}  // namespace tabella::outbox
