/* A library that is not nvJitLink: it has one of its functions only. */
int nvJitLinkCreate(void** handle, unsigned int count, const char* const* options) { return 6; }
