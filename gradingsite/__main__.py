from gradingsite.command import main

main()
