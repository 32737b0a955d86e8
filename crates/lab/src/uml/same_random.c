// Preloaded into user-mode Linux with virtual time: what the host would give as random numbers is the same in every run. The guest's
// kernel seeds its own generator with them, and so everything that programs draw in it.
//
// Nothing here is secret: the guest has no network but its own.

typedef unsigned long word;

static word state = 0x62656e63686d6172UL;

// SplitMix64 (Steele, Lea and Flood, 2014).
static word next(void)
{
    word mixed = state += 0x9e3779b97f4a7c15UL;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9UL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebUL;
    return mixed ^ (mixed >> 31);
}

long getrandom(void *buffer, word length, unsigned int flags)
{
    volatile unsigned char *bytes = buffer;
    word bits = 0;
    (void)flags;
    for (word at = 0; at < length; at++) {
        if (at % 8 == 0)
            bits = next();
        bytes[at] = (unsigned char)(bits >> (at % 8 * 8));
    }
    return (long)length;
}
