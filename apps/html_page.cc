#include "apps/html_page.h"

#include <fmt/format.h>

#include "apps/svg_plot.h"
#include "sim/markup.h"

namespace windtunnel {
namespace {

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1d2126; --paper: #ffffff; --faint: #d9dde2; --soft: #5b6570; --box: #f5f6f8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --paper: #15181c; --faint: #363c44; --soft: #9aa4af; --box: #1e2328; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--faint); padding-top: 1rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
p.note { color: var(--soft); } code { background: var(--box); padding: 0 .25em; }
table { border-collapse: collapse; font-size: 13px; } .wide { overflow-x: auto; }
th, td { padding: .15rem .5rem; text-align: right; border-bottom: 1px solid var(--faint); white-space: nowrap; } td.text, th.text { text-align: left; }
th { color: var(--soft); font-weight: 600; } td.bad { color: #c62828; font-weight: 700; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; margin: .6rem 0; } svg text { font: 11px system-ui, sans-serif; fill: var(--ink); } svg .title { font-size: 13px; font-weight: 600; } svg .small { font-size: 10px; }
svg .grid { stroke: var(--faint); stroke-width: .6; } svg .frame { fill: none; stroke: var(--soft); stroke-width: .8; } svg .device { fill: var(--box); stroke: var(--soft); stroke-width: .8; }
)";

}  // namespace

std::string HtmlPageStart(std::string_view title, std::string_view note) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n<style>{1}</style>\n"
      "</head>\n<body>\n<h1>{0}</h1>\n<p class=\"note\">{2}</p>\n",
      EscapeMarkup(title), kStyle, EscapeMarkup(note));
}

}  // namespace windtunnel
