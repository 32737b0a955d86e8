/* handshake CA [CERTIFICATE KEY]: makes the TLS handshakes that the kernel asks for (xprtsec=tls, mtls), until it is killed.
 *
 * The kernel announces over generic netlink, family "handshake", that a socket waits. ACCEPT gives the socket; GnuTLS makes the
 * session on it, as RFC 9289 wants it: TLS 1.3, the protocol name "sunrpc", the server's certificate from CA for the name that was
 * mounted. Keys go into the socket, and DONE says how it went. One line is printed for each handshake. */
#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/tls.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of the kernel's include/uapi/linux/handshake.h, which is newer than Debian 12's headers. */
enum { READY = 1, ACCEPT, DONE };
enum { ACCEPT_SOCKFD = 1, ACCEPT_HANDLER_CLASS, ACCEPT_MESSAGE_TYPE, ACCEPT_TIMEOUT, ACCEPT_AUTH_MODE, ACCEPT_PEERNAME = 8 };
enum { DONE_STATUS = 1, DONE_SOCKFD };
enum { CLASS_TLSHD = 1, CLIENTHELLO = 1, AUTH_X509 = 3 };

#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#ifndef TCP_ULP
#define TCP_ULP 31
#endif

struct message {
    struct nlmsghdr header;
    struct genlmsghdr generic;
    char attributes[4096];
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int open_netlink(void)
{
    struct sockaddr_nl address = { .nl_family = AF_NETLINK };
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
    if (netlink < 0 || bind(netlink, (struct sockaddr *)&address, sizeof address) < 0)
        die("netlink");
    return netlink;
}

static void begin(struct message *m, uint16_t family, uint8_t command)
{
    memset(m, 0, sizeof *m);
    m->header.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
    m->header.nlmsg_type = family;
    m->header.nlmsg_flags = NLM_F_REQUEST;
    m->generic.cmd = command;
    m->generic.version = 1;
}

static void put(struct message *m, uint16_t type, const void *value, size_t length)
{
    struct nlattr attribute = { .nla_len = (uint16_t)(NLA_HDRLEN + length), .nla_type = type };
    char *end = (char *)m + NLMSG_ALIGN(m->header.nlmsg_len);
    memcpy(end, &attribute, sizeof attribute);
    memcpy(end + NLA_HDRLEN, value, length);
    m->header.nlmsg_len = (uint32_t)(end - (char *)m) + NLA_ALIGN(attribute.nla_len);
}

static void put_number(struct message *m, uint16_t type, uint32_t value) { put(m, type, &value, sizeof value); }

static uint32_t sent; /* number of the last message */

static void deliver(int netlink, struct message *m)
{
    m->header.nlmsg_seq = ++sent;
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    if (sendto(netlink, m, m->header.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        die("send");
}

/* The answer to the last message. DONE has one only when it came too late. */
static void answer(int netlink, struct message *m)
{
    do
        if (recv(netlink, m, sizeof *m, 0) < 0)
            die("receive");
    while (m->header.nlmsg_seq != sent);
}

/* An attribute in `length` bytes of them, or NULL. */
static const struct nlattr *find(const void *attributes, size_t length, uint16_t type)
{
    const char *at = attributes, *end = at + length;
    while (end - at >= NLA_HDRLEN) {
        const struct nlattr *attribute = (const struct nlattr *)at;
        if (attribute->nla_len < NLA_HDRLEN || attribute->nla_len > end - at)
            return NULL;
        if ((attribute->nla_type & NLA_TYPE_MASK) == type)
            return attribute;
        at += NLA_ALIGN(attribute->nla_len);
    }
    return NULL;
}

static const void *value_of(const struct nlattr *attribute) { return (const char *)attribute + NLA_HDRLEN; }
static size_t length_of(const struct nlattr *attribute) { return attribute->nla_len - (size_t)NLA_HDRLEN; }

static uint32_t number_in(const struct message *m, uint16_t type)
{
    const struct nlattr *attribute = find(m->attributes, m->header.nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), type);
    uint32_t value = 0;
    if (attribute && length_of(attribute) >= sizeof value)
        memcpy(&value, value_of(attribute), sizeof value);
    return value;
}

/* The number of the family, and of its group of those who make TLS handshakes. */
static uint16_t find_family(int netlink, uint32_t *group)
{
    struct message m;
    begin(&m, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
    put(&m, CTRL_ATTR_FAMILY_NAME, "handshake", sizeof "handshake");
    deliver(netlink, &m);
    answer(netlink, &m);
    uint16_t family = 0;
    const struct nlattr *attribute = find(m.attributes, m.header.nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), CTRL_ATTR_FAMILY_ID);
    if (m.header.nlmsg_type == NLMSG_ERROR || !attribute) {
        fprintf(stderr, "this kernel asks for no handshakes\n");
        exit(1);
    }
    memcpy(&family, value_of(attribute), sizeof family);
    const struct nlattr *groups = find(m.attributes, m.header.nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), CTRL_ATTR_MCAST_GROUPS);
    for (uint16_t i = 1; groups; i++) {
        const struct nlattr *one = find(value_of(groups), length_of(groups), i);
        if (!one)
            break;
        const struct nlattr *name = find(value_of(one), length_of(one), CTRL_ATTR_MCAST_GRP_NAME);
        const struct nlattr *id = find(value_of(one), length_of(one), CTRL_ATTR_MCAST_GRP_ID);
        if (name && id && !strcmp(value_of(name), "tlshd"))
            memcpy(group, value_of(id), sizeof *group);
    }
    return family;
}

static gnutls_certificate_credentials_t credentials;
static int has_certificate;

/* Gives a direction's keys to the kernel. */
static int install(gnutls_session_t session, int fd, int reading)
{
    gnutls_datum_t mac, iv, key;
    unsigned char sequence[8];
    int result = gnutls_record_get_state(session, (unsigned)reading, &mac, &iv, &key, sequence);
    int option = reading ? TLS_RX : TLS_TX;
    if (result < 0)
        return result;
    if (gnutls_cipher_get(session) == GNUTLS_CIPHER_AES_256_GCM) {
        struct tls12_crypto_info_aes_gcm_256 info = { .info = { TLS_1_3_VERSION, TLS_CIPHER_AES_GCM_256 } };
        memcpy(info.salt, iv.data, sizeof info.salt);
        memcpy(info.iv, iv.data + sizeof info.salt, sizeof info.iv);
        memcpy(info.key, key.data, sizeof info.key);
        memcpy(info.rec_seq, sequence, sizeof info.rec_seq);
        return setsockopt(fd, SOL_TLS, option, &info, sizeof info);
    }
    struct tls12_crypto_info_aes_gcm_128 info = { .info = { TLS_1_3_VERSION, TLS_CIPHER_AES_GCM_128 } };
    memcpy(info.salt, iv.data, sizeof info.salt);
    memcpy(info.iv, iv.data + sizeof info.salt, sizeof info.iv);
    memcpy(info.key, key.data, sizeof info.key);
    memcpy(info.rec_seq, sequence, sizeof info.rec_seq);
    return setsockopt(fd, SOL_TLS, option, &info, sizeof info);
}

/* Makes a session; 0, or an error number for the kernel. */
static int shake(int fd, const char *name, int wants_certificate)
{
    const gnutls_datum_t protocol = { (unsigned char *)"sunrpc", 6 };
    gnutls_session_t session;
    int result, status = 0;
    if (wants_certificate && !has_certificate) {
        printf("failed %s: no certificate for it\n", name);
        return EACCES;
    }
    gnutls_init(&session, GNUTLS_CLIENT);
    gnutls_priority_set_direct(session, "SECURE256:+SECURE128:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-256-GCM:+AES-128-GCM", NULL);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_alpn_set_protocols(session, &protocol, 1, GNUTLS_ALPN_MANDATORY);
    struct in_addr address;
    if (inet_pton(AF_INET, name, &address) != 1)
        gnutls_server_name_set(session, GNUTLS_NAME_DNS, name, strlen(name));
    gnutls_session_set_verify_cert(session, name, 0);
    gnutls_transport_set_int(session, fd);
    gnutls_handshake_set_timeout(session, 20000);
    do
        result = gnutls_handshake(session);
    while (result < 0 && !gnutls_error_is_fatal(result));
    if (result < 0) {
        gnutls_datum_t why = { 0 };
        if (result == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
            gnutls_certificate_verification_status_print(gnutls_session_get_verify_cert_status(session), GNUTLS_CRT_X509, &why, 0);
        printf("failed %s: %s %s\n", name, gnutls_strerror(result), why.data ? (char *)why.data : "");
        gnutls_alert_send_appropriate(session, result);
        gnutls_free(why.data);
        status = EACCES;
    } else if (setsockopt(fd, SOL_TCP, TCP_ULP, "tls", sizeof "tls") || install(session, fd, 0) || install(session, fd, 1)) {
        printf("failed %s: keys: %s\n", name, strerror(errno));
        status = EIO;
    } else {
        printf("done %s: %s%s\n", name, gnutls_cipher_get_name(gnutls_cipher_get(session)), wants_certificate ? ", with a certificate" : "");
    }
    gnutls_deinit(session);
    return status;
}

/* Takes the next socket that waits; 0: none does. */
static int next(int netlink, uint16_t family)
{
    struct message m, done;
    char name[256] = "";
    begin(&m, family, ACCEPT);
    put_number(&m, ACCEPT_HANDLER_CLASS, CLASS_TLSHD);
    deliver(netlink, &m);
    answer(netlink, &m);
    if (m.header.nlmsg_type != family)
        return 0;
    int fd = (int)number_in(&m, ACCEPT_SOCKFD);
    const struct nlattr *peer = find(m.attributes, m.header.nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN), ACCEPT_PEERNAME);
    if (peer)
        snprintf(name, sizeof name, "%s", (const char *)value_of(peer));
    int status = number_in(&m, ACCEPT_MESSAGE_TYPE) == CLIENTHELLO ? shake(fd, name, number_in(&m, ACCEPT_AUTH_MODE) == AUTH_X509) : EOPNOTSUPP;
    begin(&done, family, DONE);
    put_number(&done, DONE_STATUS, (uint32_t)status);
    put_number(&done, DONE_SOCKFD, (uint32_t)fd);
    deliver(netlink, &done);
    close(fd);
    return 1;
}

int main(int count, char **arguments)
{
    uint32_t group = 0;
    int events = open_netlink(), calls = open_netlink();
    if (count != 2 && count != 4) {
        fprintf(stderr, "usage: handshake CA [CERTIFICATE KEY]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* A server that ends in the middle of a handshake is an error of that handshake. */
    signal(SIGPIPE, SIG_IGN);
    gnutls_certificate_allocate_credentials(&credentials);
    has_certificate = count == 4;
    if (gnutls_certificate_set_x509_trust_file(credentials, arguments[1], GNUTLS_X509_FMT_PEM) < 1 ||
        (has_certificate && gnutls_certificate_set_x509_key_file(credentials, arguments[2], arguments[3], GNUTLS_X509_FMT_PEM) < 0)) {
        fprintf(stderr, "the certificates cannot be read\n");
        return 1;
    }
    uint16_t family = find_family(calls, &group);
    if (setsockopt(events, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) < 0)
        die("group");
    for (;;) {
        struct message event;
        while (next(calls, family))
            ;
        /* More events than it has room for: all sockets that wait are taken anyway. */
        if (recv(events, &event, sizeof event, 0) < 0 && errno != ENOBUFS)
            die("receive");
    }
}
