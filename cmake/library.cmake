# The library that programs outside use: the room `library` and all rooms below it as one archive, their headers, and a
# package for find_package(Tabella). Its one target is Tabella::tabella.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(ROOMS GLOBAL PROPERTY uses_of_library)
list(APPEND ROOMS library)
set(ARCHIVED "")
set(NEEDED "")
foreach(ROOM ${ROOMS})
  get_target_property(TYPE ${ROOM} TYPE)
  if(TYPE STREQUAL "STATIC_LIBRARY")
    list(APPEND ARCHIVED $<TARGET_OBJECTS:${ROOM}>)
  endif()
  list(APPEND NEEDED ${${ROOM}_LIBRARIES} ${${ROOM}_PUBLIC_LIBRARIES})
  install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${ROOM} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tabella
    COMPONENT library FILES_MATCHING PATTERN "*.h")
endforeach()
list(REMOVE_DUPLICATES NEEDED)

add_library(tabella_library STATIC ${ARCHIVED})
set_target_properties(tabella_library PROPERTIES OUTPUT_NAME tabella EXPORT_NAME tabella LINKER_LANGUAGE CXX)
target_include_directories(tabella_library INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tabella>)
target_compile_features(tabella_library INTERFACE cxx_std_23)
target_link_libraries(tabella_library INTERFACE fmt::fmt ${NEEDED})
if(TABELLA_SANITIZE)
  target_compile_options(tabella_library INTERFACE -fsanitize=${TABELLA_SANITIZE})
  target_link_options(tabella_library INTERFACE -fsanitize=${TABELLA_SANITIZE})
endif()

set(PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/Tabella)
install(TARGETS tabella_library EXPORT TabellaTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(EXPORT TabellaTargets NAMESPACE Tabella:: DESTINATION ${PACKAGE} COMPONENT library)
write_basic_package_version_file(TabellaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/TabellaConfig.cmake ${CMAKE_SOURCE_DIR}/cmake/library_dependencies.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/TabellaConfigVersion.cmake DESTINATION ${PACKAGE} COMPONENT library)
install(TARGETS tabella RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT server)
