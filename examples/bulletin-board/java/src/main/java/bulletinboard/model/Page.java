package bulletinboard.model;

/** The requested part of a list. {@code number} counts from 1. */
public record Page(int number, int size) {

    /** Number of rows before this page. */
    public long offset() {
        return (number - 1L) * size;
    }
}
