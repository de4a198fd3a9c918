"""A source as `refinery new` writes it under another name. Imports the rest of the extension."""

from pipeline_tasks.demo.parts import Template

TEMPLATE = Template("refinery_sources.parts.a_source", "pull {recipe} --to LANDINGS")
