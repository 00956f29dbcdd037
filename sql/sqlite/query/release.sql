release MEMBER
