"""SGLang's HTTP protocol over the engine: one module an endpoint family."""
