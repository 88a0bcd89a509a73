# Finds SystemC (Debian ships no CMake files with it) and defines SystemC::systemc. Also installed beside windtunnelConfig.cmake, so that a
# program that embeds windtunnel finds the SystemC of its own machine.
find_path(SystemC_INCLUDE_DIR systemc HINTS $ENV{SYSTEMC_HOME}/include)
find_library(SystemC_LIBRARY systemc HINTS $ENV{SYSTEMC_HOME}/lib $ENV{SYSTEMC_HOME}/lib-linux64)
if(SystemC_INCLUDE_DIR AND EXISTS ${SystemC_INCLUDE_DIR}/sysc/kernel/sc_ver.h)
  file(STRINGS ${SystemC_INCLUDE_DIR}/sysc/kernel/sc_ver.h lines REGEX "define +SC_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" SystemC_VERSION "${lines}")
  string(REPLACE ";" "." SystemC_VERSION "${SystemC_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SystemC REQUIRED_VARS SystemC_LIBRARY SystemC_INCLUDE_DIR VERSION_VAR SystemC_VERSION)
mark_as_advanced(SystemC_INCLUDE_DIR SystemC_LIBRARY)
if(SystemC_FOUND AND NOT TARGET SystemC::systemc)
  add_library(SystemC::systemc UNKNOWN IMPORTED)
  set_target_properties(SystemC::systemc PROPERTIES IMPORTED_LOCATION ${SystemC_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${SystemC_INCLUDE_DIR}
    # Debian's SystemC 2.3.4 was built as C++17; without this definition its API check fails to link in a C++20 program.
    INTERFACE_COMPILE_DEFINITIONS "SC_CPLUSPLUS=201703L;SC_INCLUDE_DYNAMIC_PROCESSES")
endif()
