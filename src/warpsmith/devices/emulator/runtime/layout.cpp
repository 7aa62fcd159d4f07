// The layout of the structures in abi.h, for the test that compares abi.py with it.
#include <cstdio>
#include <string>

#include "abi.h"
#include "api.h"

namespace {

std::string layout() {
  std::string out;
  auto line = [&](const char* name, size_t value) { out += std::string(name) + " " + std::to_string(value) + "\n"; };
#define FIELD(type, field) line(#type "." #field, offsetof(type, field))
#define SIZE(type) line(#type ".size", sizeof(type))
  FIELD(ws_warp, live); FIELD(ws_warp, budget); FIELD(ws_warp, params); FIELD(ws_warp, shared); FIELD(ws_warp, shared_size);
  FIELD(ws_warp, warp_id); FIELD(ws_warp, local); FIELD(ws_warp, local_size); FIELD(ws_warp, in_flight); FIELD(ws_warp, vars);
  FIELD(ws_warp, delta); FIELD(ws_warp, instructions); FIELD(ws_warp, cache); FIELD(ws_warp, tid); FIELD(ws_warp, ntid);
  FIELD(ws_warp, ctaid); FIELD(ws_warp, nctaid); FIELD(ws_warp, dynamic_shared); FIELD(ws_warp, smid); FIELD(ws_warp, nsmid);
  FIELD(ws_warp, gridid); FIELD(ws_warp, top); FIELD(ws_warp, block);
  SIZE(ws_warp);
  FIELD(ws_groups, frontier); FIELD(ws_groups, waiting); FIELD(ws_groups, mask); FIELD(ws_groups, ranks); FIELD(ws_groups, state);
  FIELD(ws_groups, state_size); FIELD(ws_groups, parked); FIELD(ws_groups, passed); FIELD(ws_groups, streak);
  FIELD(ws_groups, park); FIELD(ws_groups, wait); FIELD(ws_groups, outer);
  SIZE(ws_groups);
  FIELD(ws_range, base); FIELD(ws_range, limit);
  SIZE(ws_range);
  FIELD(ws_site, ptx_line); FIELD(ws_site, line); FIELD(ws_site, file); FIELD(ws_site, text); FIELD(ws_site, function);
  SIZE(ws_site);
  FIELD(ws_kernel_info, abi); FIELD(ws_kernel_info, param_bytes); FIELD(ws_kernel_info, static_shared);
  FIELD(ws_kernel_info, local_bytes); FIELD(ws_kernel_info, stack_bytes); FIELD(ws_kernel_info, site_count);
  FIELD(ws_kernel_info, var_count); FIELD(ws_kernel_info, uses_grid_sync); FIELD(ws_kernel_info, reqntid);
  FIELD(ws_kernel_info, maxntid); FIELD(ws_kernel_info, name); FIELD(ws_kernel_info, entry); FIELD(ws_kernel_info, sites);
  FIELD(ws_kernel_info, vars); FIELD(ws_kernel_info, function_count); FIELD(ws_kernel_info, pad); FIELD(ws_kernel_info, functions);
  SIZE(ws_kernel_info);
#undef FIELD
#undef SIZE
  return out;
}

}  // namespace

const char* ws_abi_layout() {
  static const std::string text = layout();
  return text.c_str();
}
