"""An export as `refinery new` writes it under another name. Imports the rest of the extension."""

from pipeline_tasks.demo.parts import Template

TEMPLATE = Template("refinery_exports.parts.an_export", "build ROOT --recipe {recipe}")
