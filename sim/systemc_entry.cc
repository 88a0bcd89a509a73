// SystemC's shared library carries a main() of its own that calls sc_main, so every program that
// links it must define one. Ours all bring a main() and start the kernel from there; this weak
// definition satisfies the linker and gives way to a program that has an sc_main of its own.

extern "C" int sc_main(int argc, char* argv[]);

extern "C" __attribute__((weak)) int sc_main(int, char*[]) { return 0; }
