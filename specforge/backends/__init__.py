"""What serves: an SGLang that is launched, one that is attached to, or the embedded engine, launched like SGLang."""
