"""One file per stage; each exports its card as `STAGE`."""
