# A room is a folder under src/ and one static library. Its x_test.cpp files become one test program.
#
#   room(item USES base PRIVATE simdjson::simdjson)
#
# USES names the rooms below it (src/layers.txt says which are allowed); PRIVATE names heavy libraries that
# must not leak into the rooms above.
function(room NAME)
  cmake_parse_arguments(ROOM "" "" "USES;PRIVATE;PUBLIC" ${ARGN})
  file(GLOB SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${NAME}/*.cpp)
  set(TESTS ${SOURCES})
  list(FILTER SOURCES EXCLUDE REGEX "(_test|/main)\\.cpp$")
  list(FILTER TESTS INCLUDE REGEX "_test\\.cpp$")

  add_library(${NAME} STATIC ${SOURCES})
  target_include_directories(${NAME} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(${NAME} PRIVATE ${TABELLA_WARNINGS})
  target_link_libraries(${NAME} PUBLIC fmt::fmt ${ROOM_USES} ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE})
  target_precompile_headers(${NAME} PRIVATE ${TABELLA_PCH})

  if(TESTS AND NOT TABELLA_FUZZ)
    add_executable(${NAME}_test ${TESTS})
    target_compile_options(${NAME}_test PRIVATE ${TABELLA_WARNINGS})
    target_include_directories(${NAME}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(${NAME}_test PRIVATE ${NAME} ${ROOM_PRIVATE} GTest::gtest_main)
    target_precompile_headers(${NAME}_test PRIVATE ${TABELLA_PCH})
    add_test(NAME unit.${NAME} COMMAND ${NAME}_test)
  endif()
endfunction()

set(TABELLA_WARNINGS -Wall -Wextra -Werror -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough -Wno-missing-designated-field-initializers -Wno-missing-field-initializers)
set(TABELLA_PCH <algorithm> <array> <chrono> <cstdint> <cstring> <expected> <functional> <map> <memory>
                <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
