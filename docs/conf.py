"""The configuration of Sphinx, which builds the documentation that the site serves under /docs/.

``make docs`` builds it. The builder writes the body of each page as JSON, and
`watcher_site/documentation` renders it in the layout of the console.
"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

project = "Watcher Site"
extensions = ["myst_parser", "generated_reference", "state_diagrams"]
# The anchors of headings are those that other renderers of Markdown make.
myst_heading_anchors = 4
# Pages are rendered in light and dark by the console's own style sheet.
highlight_language = "text"
html_copy_source = False
html_use_index = False
