# A room is a folder under src/ and one static library; src/layers.txt says which rooms there are and which others
# each may use. Its x_test.cpp files become one test program, unit.<room>.
#
# What a room links beyond the rooms that it uses is said in src/CMakeLists.txt, before the rooms are made:
#
#   set(base_LIBRARIES simdjson::simdjson)   # must not leak into the rooms above
#   set(store_PUBLIC_LIBRARIES asio)         # its headers need it
function(room NAME)
  file(GLOB SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${NAME}/*.cpp)
  set(TESTS ${SOURCES})
  list(FILTER SOURCES EXCLUDE REGEX "(_test|/main|app/systems)\\.cpp$")
  list(FILTER TESTS INCLUDE REGEX "_test\\.cpp$")

  if(NOT SOURCES)
    add_library(${NAME} INTERFACE)
    target_include_directories(${NAME} INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${NAME} INTERFACE fmt::fmt ${ARGN} ${${NAME}_PUBLIC_LIBRARIES})
    return()
  endif()
  add_library(${NAME} STATIC ${SOURCES})
  target_include_directories(${NAME} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
  tabella_code(${NAME})
  target_link_libraries(${NAME} PUBLIC fmt::fmt ${ARGN} ${${NAME}_PUBLIC_LIBRARIES} PRIVATE ${${NAME}_LIBRARIES})

  if(TESTS AND NOT TABELLA_FUZZ)
    add_executable(${NAME}_test ${TESTS})
    tabella_code(${NAME}_test)
    target_include_directories(${NAME}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(${NAME}_test PRIVATE ${NAME} ${${NAME}_LIBRARIES} GTest::gtest_main)
    add_test(NAME unit.${NAME} COMMAND ${NAME}_test)
  endif()
endfunction()

# Makes every room that the file names, with what it says that each uses.
function(rooms FILE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FILE})
  file(STRINGS ${FILE} LINES REGEX "^room ")
  foreach(LINE ${LINES})
    string(REGEX REPLACE "^room +([a-z_]+).*$" "\\1" NAME "${LINE}")
    set(USES "")
    if(LINE MATCHES " uses (.*)$")
      separate_arguments(USES UNIX_COMMAND "${CMAKE_MATCH_1}")
    endif()
    room(${NAME} ${USES})
    set_property(GLOBAL PROPERTY uses_of_${NAME} ${USES})
  endforeach()
endfunction()
