"""What tasks do: operators, sensors and triggers, and how their requests reach the work."""
