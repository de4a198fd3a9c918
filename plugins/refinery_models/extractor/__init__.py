"""Trains the model that reads blocks: on pages whose text people marked, held out by site."""
