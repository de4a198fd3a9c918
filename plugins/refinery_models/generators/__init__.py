"""Generators: causal models of transformers and of vLLM in this process, and models behind OpenAI's protocol."""
